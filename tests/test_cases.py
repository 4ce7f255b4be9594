"""The field cases that are answered so far: every one has a test that carries its marker."""

import re
from pathlib import Path

# What happened to others, by id; a test says `@pytest.mark.case("A1-01")` when it stands for one.
CASES = {
    "A1-01": "keep-alive comments before the first token kill the call",
    "A1-03": "CRLF line ends are mishandled",
    "A1-04": "lines are split at U+2028 and its like inside a JSON string",
    "A1-05": "each network chunk is decoded on its own",
    "A1-06": "a clean end without a terminal mark is taken for a finished answer",
    "A1-07": "a failure after the 200 header comes as a data event",
    "A1-09": "the last chunk holds only usage and no choices",
    "A1-10": "tool call deltas come without an index",
    "A1-12": "the function name comes again in every chunk, or in pieces",
    "A1-14": "the finish reason alone decides whether calls run",
    "A1-15": "the output cap cuts an answer inside a call",
    "A1-16": "an error event in the middle of a stream is ignored",
    "A2-01": "a NUL in tool output breaks the insert",
    "A2-02": "half a surrogate pair breaks whatever encodes next",
    "A2-03": "a grandchild keeps the pipe open after the timeout",
    "A2-05": "a child waits for input that nobody can give",
    "A2-06": "a tool in a thread goes on after its timeout",
    "A2-07": "arguments that are no JSON become {}",
    "A2-09": "a call id comes twice",
    "A2-11": "two edits of one file at once lose one of them",
    "A2-16": "a tool with effects runs again after a crash",
    "A3-01": "calls without results make every later request a 400",
    "A3-02": "a note stands between calls and their results",
    "A3-04": "a note sent just as the run ends is lost or doubled",
    "A3-06": "an empty assistant message is refused for ever",
    "A3-07": "compression cuts into a parallel batch",
    "A3-09": "task and notes are gone after compressions",
    "A3-11": "cache marks pile up over turns",
    "A4-01": "a stop during the back-off waits it out",
    "A4-03": "a cancel of a queued run is forgotten",
    "A4-04": "a terminated worker leaves a run that nobody updates",
    "A4-05": "cancel and completion cross",
    "A4-07": "the stop flag lives in one process",
    "A4-09": "sub-agents outlive their parent's stop",
    "A4-11": "dead workers leave runs running for ever",
    "A5-01": "a broker hands a long run out again while it still runs",
    "A5-03": "short runs wait behind a long one while another worker is idle",
    "A5-05": "a broker that hangs hangs the web process",
    "A5-06": "the message comes before the row, or the row without a message",
    "A5-07": "events are dropped when a connection's channel is full, and nobody knows",
    "A5-09": "sockets that are cut leave tasks, sessions and files behind",
    "A5-11": "database sessions pile up with sockets and cancelled requests",
    "A5-13": "the database is locked at once, in spite of the busy timeout",
    "A5-14": "an idle connection is cut during a long model call",
    "A5-17": "a socket takes any origin, or any port of this host",
    "A5-20": "a queue without a bound keeps everything for a browser that does not read",
    "A6-01": "a big run sends every payload at once and freezes the page",
    "A6-02": "after a reconnect events are missing, or all come twice",
    "A6-04": "an image in a model's answer calls a foreign host",
    "A6-05": "one field of many is not escaped",
    "A6-07": "keys come out through errors, dumps, exports and what can be copied",
    "A6-08": "a page that was hidden or asleep shows old state as live",
    "A6-10": "pages of a growing list show rows twice and skip others",
    "A6-12": "columns are sorted as text, and only what is loaded",
    "A6-14": "a dead worker, a page offline and a slow model look the same",
    "A6-16": "copying does nothing without a word, or copies nothing",
    "A7-01": "cached tokens are charged twice or not at all",
    "A7-02": "reasoning tokens are added to what holds them already",
    "A7-04": "an interrupted stream costs nothing in the books",
    "A7-06": "a model without a price costs 0",
    "A7-09": "several read the same rest of a budget, and all start",
    "A7-10": "failed attempts are missing in the sum",
    "A7-11": "what sub-agents spend is missing, or counted twice",
    "A7-13": "out of credit is retried like a rate limit",
    "A8-01": "polling the same job is killed as a loop",
    "A8-04": "a parallel batch or a redelivery counts as repetition",
    "A8-05": "cycles of two or more successful calls are never seen",
    "A8-07": "volatile parts make every result another one",
    "A8-08": "the guard warns once and is used up",
    "A8-10": "agents hand the job to each other for ever",
    "A8-11": "one answer repeats a word up to the cap",
}
_MARK = re.compile(r"\bmark\.case\(([^)]*)\)")
_ID = re.compile(r"\bA\d-\d\d\b")


# Areas that are answered as a whole, with the numbers of all their cases.
WHOLE = {"A6": ("01", "02", "04", "05", "07", "08", "10", "12", "14", "16")}


def test_the_console_answers_its_whole_area() -> None:
    listed = {case for case in CASES if case.partition("-")[0] in WHOLE}
    assert listed == {f"{area}-{number}" for area, numbers in WHOLE.items() for number in numbers}
    browser = (Path(__file__).parent / "e2e").rglob("test_*.py")
    carried = {case for path in browser for mark in _MARK.findall(path.read_text()) for case in _ID.findall(mark)}
    assert listed - carried == set(), "each of them in a browser"


def test_every_case_has_a_test_that_carries_its_marker() -> None:
    tests = (path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__))
    carried = {case for path in tests for mark in _MARK.findall(path.read_text()) for case in _ID.findall(mark)}
    assert {case: what for case, what in CASES.items() if case not in carried} == {}
