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
    "A7-01": "cached tokens are charged twice or not at all",
    "A7-02": "reasoning tokens are added to what holds them already",
    "A7-04": "an interrupted stream costs nothing in the books",
    "A7-06": "a model without a price costs 0",
    "A7-10": "failed attempts are missing in the sum",
    "A7-11": "what sub-agents spend is missing, or counted twice",
    "A7-13": "out of credit is retried like a rate limit",
}
_MARK = re.compile(r"\bmark\.case\(([^)]*)\)")
_ID = re.compile(r"\bA\d-\d\d\b")


def test_every_case_has_a_test_that_carries_its_marker() -> None:
    tests = (path for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__))
    carried = {case for path in tests for mark in _MARK.findall(path.read_text()) for case in _ID.findall(mark)}
    assert {case: what for case, what in CASES.items() if case not in carried} == {}
