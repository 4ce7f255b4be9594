"""`flaky-test`: a night of rounding in and out. Two tests want opposite things, and the model takes them for flaky.

Left alone it makes 29 test runs and 17 edits before it gives up. It rounds the other way, runs the tests and meets the
other failure; after two of three edits it runs them once more, because they might be flaky.
"""

from agents.drill.scenarios.projects import project, run_tests, test_runs, without_project
from agents.drill.script import Asked, Conversation, Reply, Scenario

EDITS = 17
TEST_RUNS = 29
MODULE = "rounding.py"
_EVEN = "    return round(amount)\n"
_UP = "    return int(amount + 0.5)\n"
_PROJECT = project(
    {
        MODULE: f'"""Whole cents for an invoice."""\n\n\ndef cents(amount):\n{_EVEN}',
        "test_rounding.py": (
            "from rounding import cents\n\n\n"
            "def test_half_a_cent_goes_up():\n    assert cents(2.5) == 3\n\n\n"
            "def test_halves_do_not_add_up_to_a_cent():\n"
            "    assert sum(cents(n + 0.5) for n in range(4)) == 8\n"
        ),
    }
)


def _play(conversation: Conversation) -> Reply:
    last = conversation.last
    if last is None:
        return run_tests("I run the tests first.")
    if (there := without_project(conversation, _PROJECT)) is not None:
        return there
    if last.name != "run_command":
        return run_tests("Not run, so nothing is changed? The tests will tell." if last.blocked else "Now the tests.")
    edits = conversation.done("edit_file")
    if len(edits) >= EDITS:
        return Reply(
            text=f"I give up after {len(test_runs(conversation))} test runs and {len(edits)} edits: whichever way "
            "cents() rounds, one of the two tests fails. Somebody has to say which one is right."
        )
    # After a refused edit no other test fails than before, so there is nothing to doubt.
    doubted = len(edits) % 3 > 0 and not edits[-1].blocked
    if doubted and _runs_since_edit(conversation) == 1:
        return run_tests("The other test fails now. It may be flaky, so I run them once more without a change.")
    return _edit(conversation)


def _runs_since_edit(conversation: Conversation) -> int:
    count = 0
    for step in reversed(conversation.steps):
        if step.name == "edit_file":
            break
        count += step.name == "run_command"
    return count


def _edit(conversation: Conversation) -> Reply:
    """Whatever the file does now, the other way round. A refused edit has changed nothing."""
    made = [step for step in conversation.done("edit_file") if not step.blocked]
    up = bool(made) and made[-1].args["new"] == _UP
    old, new = (_UP, _EVEN) if up else (_EVEN, _UP)
    text = "Rounding halves up breaks the sum; I take it out again." if up else "Halves have to go up; I put that in."
    return Reply(text=text, calls=(Asked(name="edit_file", args={"path": MODULE, "old": old, "new": new}),))


FLAKY = Scenario(
    name="flaky-test",
    kind="loop",
    task="The rounding tests fail now and then. Get them green.",
    goal="green rounding tests",
    play=_play,
    tools=("read_file", "write_file", "edit_file", "run_command"),
    project=_PROJECT,
)
