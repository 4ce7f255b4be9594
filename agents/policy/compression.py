"""Compression of a history: what is replaced by a summary, what stays word for word, and when the summary is refused.

A compressed history is one user message (the task, every note of the operator, then the summary) and behind it the
latest turns as they were. It is cut only where an answer of the model begins, so a call and its results stay together.
The log keeps everything: `context.compressed` names the span that the messages lost, and `compressed` folds it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agents.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agents.policy import summaries
from agents.policy.budgets import Gauge, Room, message_tokens, text_tokens
from agents.policy.human import GAP, human_text
from agents.policy.steering import escape_marker
from agents.policy.summaries import Refused

# One before a call, and one more when the provider still says that it is too much; then a turn has had its share.
MAX_PER_TURN = 2
# A first summary and, told what was wrong with it, a second.
MAX_ATTEMPTS = 2
_MIN_SOURCE_TOKENS = 300
_MAX_REST_TURNS = 32
_MAX_SUMMARY_TOKENS = 3000


def worth_asking(refused_in_a_row: int, turns_since: int) -> bool:
    """Whether to ask for a summary after so many plans whose summaries were all refused: each time after longer."""
    return refused_in_a_row == 0 or turns_since >= min(2**refused_in_a_row, _MAX_REST_TURNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPlan:
    """Compression is skipped, and why: `fits`, `one_turn`, `little`, `no_window`."""

    code: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Replace `messages[from_index:to_index]` by one message. Tokens: `before_tokens` as the provider would count
    them, the others as estimated; `fixed` is the estimate of what every request carries besides (prompt, tools)."""

    from_index: int
    to_index: int
    count: int
    kept: tuple[str, ...]
    earlier: str
    request_messages: tuple[Message, ...]
    summary_tokens: int
    source_tokens: int
    tail_tokens: int
    fixed: int
    before_tokens: int
    gauge: Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The new history, and the summary as it goes into the event: folding that gives the same messages."""

    messages: list[Message]
    summary: str
    before_tokens: int
    after_tokens: int


def plan(
    messages: Sequence[Message], *, room: Room, gauge: Gauge, fixed: int = 0, record_tokens: int | None = None
) -> Plan | NoPlan:
    """Keep as many of the latest turns as fit into the target, always the last one; summarise what is older.

    `record_tokens`: what the summariser can read, if it is another model with another window. Linear.
    """
    if room.target is None or room.usable is None:
        return NoPlan(code="no_window", why="the window of this model is not known")
    sizes = [message_tokens(message) for message in messages]
    total, target = sum(sizes), gauge.estimate_for(room.target)
    if fixed + total <= target:
        return NoPlan(code="fits", why="the history is small already")
    first = _after_systems(messages)
    edges = [at for at in range(first, len(messages)) if isinstance(messages[at], AssistantMessage)]
    if len(edges) < 2:
        return NoPlan(code="one_turn", why="there is no older turn to replace")
    summary_tokens = min(_MAX_SUMMARY_TOKENS, max(target // 6, 100))
    pinned = sum(text_tokens(said) for message in messages[first:] if (said := human_text(message)))
    to_index = _cut(edges, sizes, target - fixed - pinned - summary_tokens)
    kept = _kept(messages[first:to_index])
    earlier = _ours(messages[first:to_index])
    source_tokens = sum(sizes[first:to_index]) - sum(map(text_tokens, kept))
    if source_tokens < _MIN_SOURCE_TOKENS:
        return NoPlan(code="little", why="what could be replaced is hardly larger than a summary")
    room_for_record = record_tokens or gauge.estimate_for(room.usable)
    words = max(60, min(summary_tokens, source_tokens // 2) * 6 // 10)
    return Plan(
        from_index=first,
        to_index=to_index,
        count=len(messages),
        kept=kept,
        earlier=earlier,
        request_messages=summaries.question(
            messages[first:to_index], earlier, record_tokens=max(room_for_record - 1000, 400), words=words
        ),
        summary_tokens=summary_tokens,
        source_tokens=source_tokens,
        tail_tokens=sum(sizes[:first]) + sum(sizes[to_index:]),
        fixed=fixed,
        before_tokens=gauge.tokens(fixed + total),
        gauge=gauge,
    )


def accept(plan: Plan, messages: Sequence[Message], summary: str, *, was_cut: bool = False) -> Accepted | Refused:
    """The history with the summary in place, or why the summary is not taken: then the old history stays."""
    refused = summaries.unusable(summary, plan.source_tokens, was_cut=was_cut)
    return refused or _accepted(plan, messages, summary)


def without_model(plan: Plan, messages: Sequence[Message]) -> Accepted | Refused:
    """The last resort when no summary was usable: the shortened record in its place."""
    old = messages[plan.from_index : plan.to_index]
    return _accepted(plan, messages, summaries.digest(old, plan.earlier, plan.summary_tokens))


def _accepted(plan: Plan, messages: Sequence[Message], summary: str) -> Accepted | Refused:
    if len(messages) != plan.count:
        return Refused(code="stale", why="the history has moved on since the plan was made")
    summary = escape_marker(summary.strip())
    new = compressed(messages, to_index=plan.to_index, summary=summary)
    after = round((plan.fixed + plan.tail_tokens + message_tokens(new[plan.from_index])) * plan.gauge.ratio)
    if after >= plan.before_tokens * 0.95:
        return Refused(code="not_smaller", why="the history would hardly be smaller with it; write a shorter one")
    return Accepted(messages=new, summary=summary, before_tokens=plan.before_tokens, after_tokens=after)


# --- the fold ----------------------------------------------------------------------------------------------------


def compressed(messages: Sequence[Message], *, to_index: int, summary: str) -> list[Message]:
    """The messages after a `context.compressed`: everything before the edge as one user message, the rest untouched.

    An index inside a group moves back to where the group begins. Notes and task stay word for word; an earlier
    summary is replaced. With no turn before the edge the history stays as it is.
    """
    first, edge = _after_systems(messages), safe_edge(messages, to_index)
    if all(isinstance(message, UserMessage) for message in messages[first:edge]):
        return list(messages)
    block = summaries.block(summary)
    text = GAP.join((*_kept(messages[first:edge]), block))
    return [*messages[:first], UserMessage(text=text, ours=(block,)), *messages[edge:]]


def safe_edge(messages: Sequence[Message], index: int) -> int:
    """The last place at or before `index` where an answer of the model begins; 0 if there is none."""
    at = min(index, len(messages) - 1)
    while at > 0 and not isinstance(messages[at], AssistantMessage):
        at -= 1
    return max(at, 0)


def span(messages: Sequence[Message], seqs: Sequence[int], plan: Plan) -> tuple[int, int]:
    """`from_seq` and `to_seq` of the event: `seqs` holds for each message the event that last changed it."""
    start = plan.from_index
    if isinstance(messages[start], UserMessage) and start + 1 < plan.to_index:
        start += 1  # the task itself loses nothing
    return seqs[start], seqs[plan.to_index - 1]


def index_of(seqs: Sequence[int], to_seq: int) -> int:
    """`to_index` again, from the event: how many messages were there by then."""
    return bisect_right(seqs, to_seq)


def _cut(edges: Sequence[int], sizes: Sequence[int], budget: int) -> int:
    """The earliest edge from which everything fits into the budget; the last one in any case, the first one never."""
    chosen, kept, end = edges[-1], 0, len(sizes)
    for edge in reversed(edges[1:]):
        kept += sum(sizes[edge:end])
        if kept > budget:
            break
        chosen, end = edge, edge
    return chosen


def _after_systems(messages: Sequence[Message]) -> int:
    at = 0
    while at < len(messages) and isinstance(messages[at], SystemMessage):
        at += 1
    return at


def _kept(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(said for message in messages if (said := human_text(message)))


def _ours(messages: Sequence[Message]) -> str:
    """What this program wrote among the user's words: an earlier summary, out of its frame."""
    pieces = (piece for message in messages if isinstance(message, UserMessage) for piece in message.ours)
    return GAP.join(map(summaries.unframed, pieces))
