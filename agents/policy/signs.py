"""The signs by which a run that comes to nothing may be known, and how they are read off its last calls."""

from agents.policy.courses import NAMES as OF_COURSE
from agents.policy.rows import Row

_RULE_NAMES = """
repeat_error repeat_failing_command failure_despite_changes repeat_effect repeat_state repeat_operation repeat_read
pending nothing_new same_answer empty_answers failure_other failure_transient failures_in_a_row reworded_effect
bookkeeping_only
"""
_NAMES = """
tool_calls alike close equal nearest nearest_three failed_tool failures_tool empties_tool pendings doubles_tool
doubles_tool_masked tool_answers tool_answers_masked failed_alike failures_alike empty_alike pending_alike
doubles_alike doubles_masked news_alike masked_news_alike answers_alike answers_alike_masked same_ids
news_4 masked_news_4 news_8 masked_news_8 failed_8 laps_8 same_tool_8 new_states_8 returns_8 waits_8
tools_8 laps known since_news waits since_person ordered since_compression compressions new_ids new_words
told_new told_4 told_8 follows acts looks
strongest sum_of_rules
"""
# Of these rules each count is a sign of its own.
RULES = tuple(_RULE_NAMES.split())
SIGNS = (*_NAMES.split(), *OF_COURSE, *RULES)
_EIGHT, _FOUR = 8, 4


def _tally(rows: list[Row]) -> tuple[int, int, int, int, int]:
    """How many failed, were empty, waited, and said what another one had said, to the letter or but for numbers."""
    failures = empties = pendings = 0
    for row in rows:
        failures += row.failed
        empties += row.empty
        pendings += row.pending
    many = len(rows)
    return failures, empties, pendings, many - len({row.same for row in rows}), many - len({row.gist for row in rows})


def of_tool(rows: list[Row]) -> tuple[float, ...]:
    if not rows:
        return (0.0, 0, 0, 0, 0, 0, 0.5, 0.5)
    many = len(rows)
    failures, empties, pendings, doubles, doubles_masked = _tally(rows)
    recent = rows[-5:]
    return (
        failures / many,
        failures,
        empties,
        pendings,
        doubles,
        doubles_masked,
        sum([row.tool_lines for row in recent]) / len(recent),
        sum([row.tool_masked for row in recent]) / len(recent),
    )


def of_alike(rows: list[Row]) -> tuple[float, ...]:
    if not rows:
        return (0.0, 0, 0.0, 0.0, 0, 0, 0.0, 0.0, 0.5, 0.5)
    many = len(rows)
    failures, empties, pendings, doubles, doubles_masked = _tally(rows)
    recent = rows[-4:]
    few = len(recent)
    return (
        failures / many,
        failures,
        empties / many,
        pendings / many,
        doubles,
        doubles_masked,
        sum([row.news for row in recent]) / few,
        sum([row.masked_news for row in recent]) / few,
        sum([row.like_lines for row in recent]) / few,
        sum([row.like_masked for row in recent]) / few,
    )


def of_window(rows: list[Row], tool: str) -> list[float]:
    """What the last four and the last eight calls were like."""
    news = masked = 0.0
    failed = laps = own = states = returns = waits = 0
    signs: list[float] = []
    tools = set()
    many = min(len(rows), _EIGHT)
    four = min(many, _FOUR)
    for at, row in enumerate(reversed(rows[-_EIGHT:]), 1):
        news += row.news
        masked += row.masked_news
        failed += row.failed
        laps += row.lap
        own += row.tool == tool
        waits += row.waited
        tools.add(row.tool)
        if row.state:
            states += row.state > 0
            returns += row.state < 0
        if at == four:
            signs = [news / at, masked / at]
    signs += (news / many, masked / many, failed / many, laps / many, own / many)
    signs += (states, returns, waits / many, len(tools) / many)
    return signs
