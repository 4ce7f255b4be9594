"""Healthy work that looks like a loop from outside: polling, testing until green, reading again, paging, waiting,
writing many notes. A guard that touches one of these is one that people switch off.
"""

from agents.drill.scenarios.projects import project, run_tests, test_runs, without_project
from agents.drill.script import Asked, Conversation, Reply, Scenario
from agents.drill.tools import CreateNote, FetchReport, JobStatus, NextPage

# --- polling a job ---------------------------------------------------------------------------------------------


def _poll(conversation: Conversation) -> Reply:
    looks = conversation.done("job_status")
    if looks and '"done"' in (looks[-1].result or ""):
        return Reply(text=f"The export is done, after {len(looks)} looks.")
    text = "The export runs; I look again." if looks else "I look how far the export is."
    return Reply(text=text, calls=(Asked(name="job_status", args={"job": "export-7"}),))


POLL = Scenario(
    name="poll-job",
    kind="healthy",
    task="Tell me when job export-7 is done.",
    goal="the end of job export-7",
    play=_poll,
    own_tools=lambda: (JobStatus(),),
)

# --- edit and test until green ---------------------------------------------------------------------------------

_MODULE = "prices.py"
# Test -> what is wrong and what mends it, in the order in which pytest names them. No two versions have one size, or
# Python could take the compiled one of before.
_FIXES = {
    "test_net_is_without_tax": ("    return gross - rate\n", "    return gross / (1 + rate)\n"),
    "test_discount_is_taken_off": ("    return price * percent / 100\n", "    return price * (100 - percent) / 100\n"),
    "test_light_parcels_cost_something": (
        "    return 5 if kilos > 2 else 0\n",
        "    return 500 if kilos > 2 else 300\n",
    ),
    "test_quantity_counts": (
        "    return sum(price for price, _ in lines)\n",
        "    return sum(price * quantity for price, quantity in lines)\n",
    ),
}
_PROJECT = project(
    {
        _MODULE: '"""Small sums of a shop, in cents."""\n'
        + "".join(
            f"\n\ndef {head}:\n{wrong}"
            for head, (wrong, _) in zip(
                ("net(gross, rate)", "discounted(price, percent)", "postage(kilos)", "total(lines)"),
                _FIXES.values(),
                strict=True,
            )
        ),
        "test_prices.py": "from prices import discounted, net, postage, total\n"
        + "".join(
            f"\n\ndef {name}():\n    assert {claim}\n"
            for name, claim in zip(
                _FIXES,
                (
                    "net(125, 0.25) == 100",
                    "discounted(200, 10) == 180",
                    "postage(1) == 300",
                    "total([(250, 2)]) == 500",
                ),
                strict=True,
            )
        ),
    }
)


def _until_green(conversation: Conversation) -> Reply:
    if not conversation.steps:
        return run_tests("I run the tests first.")
    if (there := without_project(conversation, _PROJECT)) is not None:
        return there
    if conversation.steps[-1].name != "run_command" or conversation.steps[-1].blocked:
        return run_tests("Now the tests.")
    said = test_runs(conversation)[-1].result or ""
    failing = next((name for name in _FIXES if f"::{name}" in said), None)
    if failing is None and "passed" not in said:
        return Reply(text=f"The tests tell nothing that I can mend. They said: {said.strip()}")
    if failing is None:
        return Reply(text=f"All tests are green, after {len(test_runs(conversation))} runs.")
    old, new = _FIXES[failing]
    edit = Asked(name="edit_file", args={"path": _MODULE, "old": old, "new": new})
    return Reply(text=f"{failing} fails; I mend that.", calls=(edit,))


UNTIL_GREEN = Scenario(
    name="edit-until-green",
    kind="healthy",
    task="Get the price tests green.",
    goal="green price tests",
    play=_until_green,
    tools=("read_file", "write_file", "edit_file", "run_command"),
    project=_PROJECT,
)

# --- read again after each write -------------------------------------------------------------------------------

_PAGE = "rota.md"
_LINES = ("# Rota\n", "- Monday: Ada\n", "- Tuesday: Ben\n", "- Wednesday: Cleo\n", "- Thursday: Dov\n")


def _read_again(conversation: Conversation) -> Reply:
    writes, reads = (len(conversation.ran(name, path=_PAGE)) for name in ("write_file", "read_file"))
    if writes > reads:
        return Reply(text="I read what is there now.", calls=(Asked(name="read_file", args={"path": _PAGE}),))
    if writes == len(_LINES):
        return Reply(text=f"The rota is complete: {writes - 1} days.")
    text = "".join(_LINES[: writes + 1])
    call = Asked(name="write_file", args={"path": _PAGE, "content": text})
    return Reply(text="One line more.", calls=(call,))


READ_AGAIN = Scenario(
    name="reread-after-write",
    kind="healthy",
    task="Write the rota line by line, and check it after each line.",
    goal="a rota of four days",
    play=_read_again,
    tools=("read_file", "write_file"),
)

# --- pages behind a cursor -------------------------------------------------------------------------------------


def _page(conversation: Conversation) -> Reply:
    pages = conversation.done("next_page")
    if pages and '"more": false' in (pages[-1].result or ""):
        return Reply(text=f"{len(pages)} pages read, that is all of them.")
    return Reply(text="The next page.", calls=(Asked(name="next_page", args={}),))


PAGES = Scenario(
    name="cursor-paging",
    kind="healthy",
    task="Read all pages of open orders.",
    goal="all pages of open orders",
    play=_page,
    own_tools=lambda: (NextPage(),),
)

# --- again, each time later ------------------------------------------------------------------------------------

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.02, 0.2


def _later(conversation: Conversation) -> Reply:
    tries = conversation.done("fetch_report")
    if tries and '"orders"' in (tries[-1].result or ""):
        return Reply(text=f"The report is there, at try {len(tries)}: {tries[-1].result}")
    if tries and conversation.steps[-1].name == "fetch_report":
        wait_s = min(_FIRST_WAIT_S * 2 ** (len(tries) - 1), _LONGEST_WAIT_S)
        wait = Asked(name="run_command", args={"command": f"sleep {wait_s:g}"})
        return Reply(text=f"Overloaded. I wait {wait_s:g} s and try again.", calls=(wait,))
    return Reply(text="I fetch the report.", calls=(Asked(name="fetch_report", args={"month": "2026-10"}),))


LATER = Scenario(
    name="growing-waits",
    kind="healthy",
    task="Fetch the sales report of October.",
    goal="the sales report of October",
    play=_later,
    tools=("run_command",),
    own_tools=lambda: (FetchReport(),),
)

# --- many writes, one answer -----------------------------------------------------------------------------------

NOTES = (
    "Renew the certificate of the shop before Friday.",
    "The night build needs 3 GB more disk.",
    "Cleo takes the pager on Thursday.",
    "Ask the bank why two payments came back.",
    "Old export scripts can be deleted after the audit.",
    "Postage went up by 20 cents on Monday.",
    "Printer on floor two is out of toner.",
    "Dov's laptop is ready to be collected.",
)


def _note(conversation: Conversation) -> Reply:
    made = len(conversation.ran("create_note"))
    if made == len(NOTES):
        return Reply(text=f"All {made} notes are on the board.")
    return Reply(text=f"Note {made + 1}.", calls=(Asked(name="create_note", args={"text": NOTES[made]}),))


NOTED = Scenario(
    name="same-acknowledgement",
    kind="healthy",
    task="Put the eight notes from the stand-up on the board.",
    goal="eight notes on the board",
    play=_note,
    own_tools=lambda: (CreateNote(),),
)

HEALTHY = (POLL, UNTIL_GREEN, READ_AGAIN, PAGES, LATER, NOTED)
