"""Makes room in a model's window: a summary in place of the older turns, or shorter results where none can be had."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents import kinds
from agents.engine.journal import Journal
from agents.engine.threads import POOL
from agents.engine.window import Window
from agents.errors import RunFailed
from agents.messages import Message
from agents.policy import compression, shortening, summaries
from agents.policy.compression import Accepted, NoPlan, Plan
from agents.policy.shortening import Stubs

# Above this a plan takes longer than other runs on this loop should wait.
ON_LOOP_TOKENS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the summariser wrote; `was_cut` at its output limit."""

    text: str
    was_cut: bool


Summarise = Callable[[Sequence[Message]], Awaitable[Draft]]


class Compressor:
    """One per run. `summarise` raises RunFailed when no answer is to be had."""

    def __init__(
        self, journal: Journal, summarise: Summarise, record_tokens: Callable[[], Awaitable[int | None]]
    ) -> None:
        self._journal = journal
        self._transcript = journal.transcript
        self._summarise = summarise
        self._record_tokens = record_tokens
        self._refused = 0
        self._refused_at = 0

    async def make_room(self, window: Window, turn: int | None) -> None:
        """Before a request: until it fits, or the turn has had its share. Cancellable at any moment."""
        for _ in range(compression.MAX_PER_TURN):
            if not window.too_full() or not await self.compress(window, turn):
                return

    async def compress(self, window: Window, turn: int | None) -> bool:
        """Once. Returns whether the history is smaller now."""
        before = window.estimated
        body = await self._smaller(window)
        if body is None:
            return False
        self._journal.write(body, turn=turn)
        window.sent.update()
        return window.estimated < before

    async def _smaller(self, window: Window) -> kinds.ContextCompressed | None:
        plan = await self._plan(window)
        if isinstance(plan, Plan) and compression.worth_asking(self._refused, self._transcript.turn - self._refused_at):
            accepted = await self._summary(plan)
            if accepted is not None:
                return self._summarised(plan, accepted)
        stubs = shortening.stubs(self._transcript.messages, room=window.room, gauge=window.gauge, fixed=window.fixed)
        if isinstance(plan, Plan) and (stubs is None or window.room.too_full(stubs.after_tokens)):
            digest = compression.without_model(plan, self._transcript.messages)
            if isinstance(digest, Accepted):
                return self._summarised(plan, digest)
        return None if stubs is None else self._shortened(stubs)

    async def _plan(self, window: Window) -> Plan | NoPlan:
        messages, record_tokens = list(self._transcript.messages), await self._record_tokens()
        room, gauge, fixed = window.room, window.gauge, window.fixed

        def work() -> Plan | NoPlan:
            return compression.plan(messages, room=room, gauge=gauge, fixed=fixed, record_tokens=record_tokens)

        if window.estimated < ON_LOOP_TOKENS:
            return work()
        planned: Plan | NoPlan = await POOL.submit(work)
        return planned

    async def _summary(self, plan: Plan) -> Accepted | None:
        """A summary that can be used, in at most two attempts."""
        request = plan.request_messages
        for _ in range(compression.MAX_ATTEMPTS):
            try:
                draft = await self._summarise(request)
            except RunFailed:
                break
            got = compression.accept(plan, self._transcript.messages, draft.text, was_cut=draft.was_cut)
            if isinstance(got, Accepted):
                self._refused = 0
                return got
            request = summaries.again(request, got)
        self._refused, self._refused_at = self._refused + 1, self._transcript.turn
        return None

    def _summarised(self, plan: Plan, got: Accepted) -> kinds.ContextCompressed:
        transcript = self._transcript
        from_seq, to_seq = compression.span(transcript.messages, transcript.seqs, plan)
        return kinds.ContextCompressed(
            before_tokens=got.before_tokens,
            after_tokens=got.after_tokens,
            summary=got.summary,
            from_seq=from_seq,
            to_seq=to_seq,
        )

    def _shortened(self, stubs: Stubs) -> kinds.ContextCompressed:
        transcript = self._transcript
        said: dict[str, Mapping[str, Any]] = {}
        for call, keep in stubs.keep.items():
            kept = transcript.artifacts.get(call, {})
            said[call] = {"keep": keep, **{name: kept[name] for name in ("sha256", "bytes") if name in kept}}
        return kinds.ContextCompressed(
            before_tokens=stubs.before_tokens,
            after_tokens=stubs.after_tokens,
            summary=f"No summary: {len(said)} results of tools were shortened. The log holds them whole.",
            from_seq=transcript.seqs[0],
            to_seq=transcript.seqs[-1],
            stubs=said,
        )
