"""Money and tokens turn by turn, and the run's sums."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from control.incidents.postmortem.record import Record
from control.incidents.postmortem.repeats import cost_of
from control.incidents.postmortem.report import Impact, TurnCost
from control.incidents.postmortem.teaching import Lesson


def turns(record: Record) -> list[TurnCost]:
    """One row per turn that spent something. What summaries cost counts to the turn before them."""
    begun: dict[int, tuple[datetime, int]] = {}
    for chat in record.chats.values():
        if chat.turn is not None:
            begun.setdefault(chat.turn, (chat.started, chat.seq))
    sums: dict[int, list[Decimal]] = {}
    read: dict[int, int] = {}
    wrote: dict[int, int] = {}
    now = next(iter(begun), 1)
    for one in record.spent:
        now = one.turn if one.turn is not None else now
        sums.setdefault(now, []).append(one.usd or Decimal(0))
        # Attempts of one call send the same history again: the largest is what the turn's request held.
        read[now] = max(read.get(now, 0), one.tokens_in)
        wrote[now] = wrote.get(now, 0) + one.tokens_out
    total = Decimal(0)
    found = []
    for turn, spent in sums.items():
        at, seq = begun.get(turn, (record.started_at, 1))
        usd = sum(spent, Decimal(0))
        total += usd
        found.append(
            TurnCost(turn=turn, at=at, seq=seq, tokens_in=read[turn], tokens_out=wrote[turn], usd=usd, total_usd=total)
        )
    return found


def impact(record: Record, lessons: Sequence[Lesson]) -> Impact:
    wasted = [one for one in lessons if one.wasted]
    tools = record.tools.values()
    failed = [one for one in record.retries if one.attempt]
    failed_usd = sum((one.usd for one in failed if one.usd is not None), Decimal(0))
    known = record.known_usd
    return Impact(
        duration_s=(record.ended_at - record.started_at).total_seconds(),
        turns=max((chat.turn or 0 for chat in record.chats.values()), default=0),
        model_calls=sum(chat.done_seq is not None for chat in record.chats.values()),
        failed_attempts=len(failed),
        failed_attempts_usd=failed_usd,
        tool_calls=len(record.tools),
        tool_calls_run=sum(tool.ran for tool in tools),
        tool_calls_failed=sum(tool.failed for tool in tools),
        tool_calls_refused=sum(tool.status == "blocked" for tool in tools),
        edits=len(record.writes),
        sub_agents=sum(event["kind"] == "child.started" for event in record.others),
        tokens_in=sum(one.tokens_in for one in record.spent),
        tokens_out=sum(one.tokens_out for one in record.spent),
        tokens_cached=sum(one.cached for one in record.spent),
        cost_usd=known,
        cost_complete=not any(one.unknown for one in record.spent),
        wasted_calls=len(wasted),
        wasted_tokens=sum(one.tokens for one in wasted),
        wasted_usd=None if known is None else cost_of(wasted),
    )
