"""Had a run ended earlier: which fuse would have ended it where, and what it would have been spared.

The postmortem of one run and the backtest of many each fold a log for their own ends, and ask this of what they folded.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol, TypeVar

from agents.policy.policies import Fuses


class Chat(Protocol):
    """One model call: the `seq` of its start and of its answer. A summary is one too, and has no turn."""

    @property
    def seq(self) -> int: ...
    @property
    def done_seq(self) -> int | None: ...
    @property
    def turn(self) -> int | None: ...


class Step(Protocol):
    """One tool call that the model asked for, counted from 1."""

    @property
    def step(self) -> int: ...
    @property
    def ran(self) -> bool: ...


_Chat = TypeVar("_Chat", bound=Chat)


def held_back(
    fuses: Fuses, chats: Iterable[_Chat], seconds_into: Callable[[_Chat], float] | None
) -> list[tuple[_Chat, str, str]]:
    """(model call, fuse, why) of each fuse that is not the guard's and holds one back: turns, model calls, time.

    `seconds_into` the run a call began; None if that is not known.
    """
    found = []
    answered = [chat for chat in chats if chat.done_seq is not None]
    turns = [chat for chat in answered if chat.turn is not None]
    for name, limit, asked in (
        ("max_turns", fuses.max_turns, turns),
        ("max_model_calls", fuses.max_model_calls, answered),
    ):
        if limit is not None and len(asked) > limit:
            found.append((asked[limit], name, f"{limit} allowed"))
    most = fuses.max_seconds
    if most is not None and seconds_into is not None:
        late = next((chat for chat in answered if seconds_into(chat) > most), None)
        if late is not None:
            found.append((late, "max_seconds", f"{most:g} seconds allowed"))
    return found


def saved(
    seq: int,
    step: int,
    *,
    steps: Iterable[Step],
    chats: Iterable[Chat],
    spent: Iterable[tuple[int, int, Decimal | None]],
) -> dict[str, Any]:
    """What came after the answer at `seq`, which asked for the call `step` that would never have run.

    `spent`: (seq, tokens, dollars or None) of each attempt. `saved_usd` None: nothing is known of the run's cost.
    """
    every = list(spent)
    after = [(tokens, usd) for at, tokens, usd in every if at > seq]
    known = any(usd is not None for _, _, usd in every)
    return {
        "saved_calls": sum(one.ran and one.step >= step for one in steps),
        "saved_model_calls": sum((chat.done_seq or 0) > seq for chat in chats),
        "saved_tokens": sum(tokens for tokens, _ in after),
        "saved_usd": sum((usd for _, usd in after if usd is not None), Decimal(0)) if known else None,
    }


def dollars(value: Any) -> Decimal | None:
    """A sum as the log tells it; None for none and for what is no sum."""
    if value is None or isinstance(value, bool):
        return None
    try:
        made = Decimal(str(value))
    except InvalidOperation:
        return None
    return made if made.is_finite() else None
