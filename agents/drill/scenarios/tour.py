"""`tour`: makes a tiny project with a bug, tests, reads, mends, tests again, asks one question and sums up."""

from agents.drill.script import Asked, Conversation, Reply, Scenario, Step, first_line

_PACE_S = 0.015
_LONGEST_S = 0.2
MODULE = "basket/basket.py"
TEST = "basket/test_basket.py"
README = "basket/README.md"
TEST_COMMAND = "python3 -B -m unittest discover -q -s basket"
QUESTION = "The tests are green. Shall I add a short README, or leave it at that?"
CHOICES = ("Add a README", "Leave it at that")
_WRONG = "return sum(price for price, _ in lines)"
_RIGHT = "return sum(price * quantity for price, quantity in lines)"
_MODULE_TEXT = f'''"""What a basket costs."""


def total(lines):
    """The sum over (price, quantity) lines, in cents."""
    {_WRONG}
'''
_TEST_TEXT = """import unittest

from basket import total


class TotalTest(unittest.TestCase):
    def test_empty_basket_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_quantity_counts(self):
        self.assertEqual(total([(250, 2), (99, 1)]), 599)


if __name__ == "__main__":
    unittest.main()
"""
_README_TEXT = "# basket\n\n`total(lines)` sums (price, quantity) lines in cents. Test: `python3 -m unittest -q`.\n"


def _write(path: str, content: str) -> Asked:
    return Asked(name="write_file", args={"path": path, "content": content})


def _test_runs(conversation: Conversation, after: Step | None) -> list[Step]:
    """The test runs made after the given step (before it, if None)."""
    runs = conversation.done("run_command", command=TEST_COMMAND)
    if after is None:
        return runs
    edge = conversation.steps.index(after)
    return [run for run in runs if conversation.steps.index(run) > edge]


def _wants_readme(answer: str) -> bool:
    said = answer.lower()
    return "leave" not in said and any(word in said for word in ("readme", "yes", "add"))


def _prepare(conversation: Conversation) -> Reply | None:
    looked = conversation.done("list_files")
    if not looked:
        return Reply(text="I look at the workspace first.", calls=(Asked(name="list_files", args={}),))
    there = "test_basket.py" in (looked[0].result or "")
    if not there and not conversation.done("write_file"):
        return Reply(
            text="There is no project yet, so I write a small one with its test.",
            calls=(_write(MODULE, _MODULE_TEXT), _write(TEST, _TEST_TEXT)),
        )
    return None


def _mend(conversation: Conversation) -> Reply | None:
    test = Asked(name="run_command", args={"command": TEST_COMMAND})
    skip = conversation.told("skip", "test")
    edits = conversation.done("edit_file")
    first = _test_runs(conversation, None)
    if not first and not skip:
        return Reply(text="Now the tests.", calls=(test,))
    if not edits and not conversation.done("read_file"):
        return Reply(
            text="I read what the code does." if skip or "FAILED" in (first[0].result or "") else "Green. A last look.",
            calls=(
                Asked(name="read_file", args={"path": MODULE}),
                Asked(name="read_file", args={"path": TEST}),
                Asked(name="search_files", args={"pattern": "quantity"}),
            ),
        )
    wrong = any(_WRONG in (step.result or "") for step in conversation.done("read_file", path=MODULE))
    if wrong and not edits:
        edit = Asked(name="edit_file", args={"path": MODULE, "old": _WRONG, "new": _RIGHT})
        return Reply(text="The total forgets the quantity. I mend that line.", calls=(edit,))
    if edits and not skip and not _test_runs(conversation, edits[-1]):
        return Reply(text="The tests once more.", calls=(test,))
    return None


def _ask(conversation: Conversation) -> Reply | None:
    asked = conversation.done("clarify")
    if not asked:
        if "clarify" not in conversation.offered or conversation.told("skip", "question"):
            return None
        question = Asked(name="clarify", args={"question": QUESTION, "choices": list(CHOICES)})
        return Reply(text="One question before I finish.", calls=(question,))
    if _wants_readme(asked[0].result or "") and not conversation.done("write_file", path=README):
        return Reply(text="Then a short README.", calls=(_write(README, _README_TEXT),))
    return None


def _sum_up(conversation: Conversation) -> Reply:
    runs = _test_runs(conversation, None)
    if conversation.told("skip", "test"):
        tests = "the tests were skipped as you asked"
    else:
        tests = "the tests are green" if runs and "OK" in (runs[-1].result or "") else "the tests are not green"
    asked = conversation.done("clarify")
    answer = f" Your answer was “{first_line(asked[0].result)}”." if asked else ""
    mended = "total() now counts the quantity" if conversation.done("edit_file") else "there was nothing to mend"
    readme = " A README is there." if conversation.done("write_file", path=README) else ""
    return Reply(text=f"Done: {mended}, and {tests}.{answer}{readme}")


def _play(conversation: Conversation) -> Reply:
    for stage in (_prepare, _mend, _ask):
        reply = stage(conversation)
        calls = tuple(call for call in reply.calls if call.name in conversation.offered) if reply else ()
        if reply and calls:
            return _paced(reply.text, calls)
    return _paced(_sum_up(conversation).text, ())


def _paced(text: str, calls: tuple[Asked, ...]) -> Reply:
    return Reply(text=text, calls=calls, pace_s=min(_PACE_S, _LONGEST_S / max(1, len(text.split()))))


TOUR = Scenario(
    name="tour",
    kind="healthy",
    task="Show me what you can do: get the basket project's tests green.",
    goal="a mended basket.py with green tests",
    play=_play,
    tools=("list_files", "read_file", "search_files", "write_file", "edit_file", "run_command", "clarify"),
)
