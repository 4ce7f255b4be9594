"""One open call to a model: what it has been through, and the events that open, retry and close it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agents import kinds
from agents.engine.journal import Journal
from agents.engine.ledger import NOTHING, Cost
from agents.engine.questions import Question
from agents.engine.stream import Stream
from agents.events import stamp
from agents.ids import new_id
from agents.policy.accounts import Grant
from agents.policy.recovery import Tried
from agents.policy.redaction import make_safe
from agents.ports import ChatRequest, Clock, Picked
from agents.spec import ModelSpec


@dataclass(slots=True, kw_only=True)
class Asked:
    """`attempt` counts over all models and keys; `failed` are the keys passed over, `backs` when some are back.

    `unpaid` is what a failed attempt had cost until an event holds it; `next` a key to go on with; `chants` how often
    the model said the same over and over instead of an answer. `grant` is what the next attempt is paid with, `request`
    what may be sent for it.
    """

    question: Question
    place: int
    id: str = field(default_factory=new_id)
    name: str = ""
    began: float = 0.0
    is_open: bool = False
    picked: Picked | None = None
    next: Picked | None = None
    attempt: int = 0
    tried: Tried = field(default_factory=Tried)
    failed: set[str] = field(default_factory=set)
    backs: list[datetime] = field(default_factory=list)
    stream: Stream | None = None
    unpaid: Cost | None = None
    chants: int = 0
    grant: Grant | None = None
    request: ChatRequest | None = None

    @property
    def model(self) -> Picked:
        assert self.picked is not None
        return self.picked


class Pen:
    """Writes what becomes of calls."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    def open(self, asked: Asked, spec: ModelSpec) -> None:
        """Once, whether a model is picked already or not."""
        if asked.is_open:
            return
        picked = asked.picked
        asked.is_open, asked.began = True, self._clock.monotonic()
        model = picked.model.name if picked else spec.model
        asked.name = asked.question.name or model
        self._write(
            asked,
            kinds.CallStarted(
                operation="chat",
                name=asked.name,
                model=model,
                provider=picked.model.provider if picked else spec.provider,
                credential=picked.credential if picked else spec.credential,
            ),
        )

    def retried(
        self, asked: Asked, facts: dict[str, Any], action: str, wait_s: float, changes: Sequence[str] = ()
    ) -> None:
        """One attempt has failed and `wait_s` from now there is another."""
        cost, asked.unpaid = asked.unpaid or NOTHING, None
        self._write(
            asked,
            kinds.CallRetried(
                error=facts,
                action=action,
                wait_s=wait_s,
                until=stamp(self._clock.now() + timedelta(seconds=wait_s)),
                attempt=asked.attempt,
                changes=[make_safe(change).text for change in changes][:20] or None,
                **cost.fields(),
            ),
        )

    def rotated(self, asked: Asked, to: str | None, reason: str, cooldown_s: float | None) -> None:
        left = asked.model.credential
        if left is not None and left != to:
            self._write(asked, kinds.CredentialRotated(from_=left, to=to, reason=reason, cooldown_s=cooldown_s))

    def fell_back(self, asked: Asked, left: str, to: str, reason: str) -> None:
        self._write(asked, kinds.ModelFellBack(from_=left, to=to, reason=reason))

    def close(self, asked: Asked, status: str, result: str | None, *, text: str | None, cost: Cost) -> None:
        """A call without an answer. It is closed once."""
        if not asked.is_open:
            return
        asked.is_open, asked.unpaid = False, None
        self._write(
            asked,
            kinds.CallCompleted(
                operation="chat",
                name=asked.name,
                status=status,
                result=result,
                text=text,
                duration_ms=self.since(asked),
                **cost.fields(),
            ),
        )

    def since(self, asked: Asked) -> float:
        return round((self._clock.monotonic() - asked.began) * 1000, 1)

    def _write(self, asked: Asked, body: kinds.Body) -> None:
        self._journal.write(body, turn=asked.question.turn, call=asked.id)
