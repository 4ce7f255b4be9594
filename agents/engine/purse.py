"""What a run's model calls are paid from: each attempt is paid for before it is made and settled after it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from agents import kinds
from agents.engine.asked import Asked
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.judgement import told
from agents.engine.ledger import Cost
from agents.engine.threads import POOL
from agents.errors import LoopIncident
from agents.policy import accounts, fuses
from agents.policy.accounts import NOTHING, Amounts, Grant, Need, Short
from agents.policy.fuses import Nearing, Trip
from agents.ports import Clock, Ledger
from agents.spec import ModelSpec, RunSpec

if TYPE_CHECKING:
    from agents.providers.prices import Price

# Where a model's own cap is not known, and what is enough for an answer near a limit.
USUAL_OUTPUT = 8_192
# A limit of so many tokens is passed by no answer that begins before half of it is taken.
LARGE_LIMIT = 2_000_000
# What others hold comes back when their calls end; how often it is looked, from when it is told, how long it is borne.
RETRY_S, TELL_S, LONGEST_S = 0.25, 1.0, 900.0
# Estimates are a little off: more before a model's counts are known, and by the frame that goes around.
CARE, FIRST_CARE, FRAME = Decimal("1.05"), Decimal("1.25"), 16
# Tokens of the instruction to write the last word.
INSTRUCTION = 200
PRICE_KEPT_S = 60.0


class Purse:
    """One per run. Its first payment opens the run's account."""

    def __init__(self, *, ledger: Ledger, journal: Journal, control: RunControl, clock: Clock, spec: RunSpec) -> None:
        self._ledger = ledger
        self._journal = journal
        self._control = control
        self._clock = clock
        self._policy: Mapping[str, Any] = spec.policy_body
        self._root = spec.parent is None
        self._last_word = self._root and bool(spec.policy_body.get("last_word"))
        said = spec.policy_body.get("last_word")
        self._instruction = INSTRUCTION + (len(said) if isinstance(said, str) else 0)
        self._free = spec.policy_body.get("unpriced") == "tokens_only"
        self._warn_calls = min(accounts.fuse_values(spec.policy_body, "warn_model_calls"), default=None)
        self._prices = Prices()
        self._open = False
        control.on_raise.append(self._raised)

    async def pay(self, asked: Asked, check: Callable[[], None]) -> Short | None:
        """Hold what the next attempt may take; `asked.request` is then what may be sent. A Short is of the key alone,
        and another key may do. Raises LoopIncident if a limit is in the way for good; `check` is called while others
        hold what is left, and may raise.
        """
        if not self._open:
            self._open = True
            self._ledger.open(self._ceilings(), self._used())
        request = asked.question.request(asked.model)
        need, known = await self._need(asked, request.max_output_tokens)
        got = await self._granted(asked, need, check)
        if isinstance(got, Short):
            if got.key.startswith("credential:") and need.priced:
                return got
            trip = Trip(fuse=got.fuse, explanation=got.explanation, count=got.used)
            raise LoopIncident(trip.verdict(self._journal.transcript.steps), fuse=True)
        asked.grant = got
        capped = request.max_output_tokens is not None and request.max_output_tokens <= got.output_tokens
        bound = got.tight or not (known or self._has_room())
        asked.request = replace(request, max_output_tokens=got.output_tokens) if bound and not capped else request
        self._warn(got, asked.question.turn)
        return None

    def settle(self, asked: Asked, cost: Cost) -> None:
        """The attempt is over. What nobody knows of it counts as all that was held."""
        grant, asked.grant = asked.grant, None
        if grant is not None:
            self._ledger.settle(grant, accounts.spent_of(cost.usage, cost.cost_usd, cost.cost_source, grant.held))

    # --- one call ---------------------------------------------------------------------------------------------

    async def _need(self, asked: Asked, cap: int | None) -> tuple[Need, bool]:
        """What the next attempt may take, and whether that is the most it can."""
        spec, question = asked.model.spec, asked.question
        price, most = await self._prices.of(spec)
        size, measured = question.size(asked.model)
        tokens = int(size * (CARE if measured else FIRST_CARE)) + FRAME
        if price is None and self._free:
            self._tell_unpriced(spec, question.turn)
        usd, rate = _dear(price, tokens)
        output = cap or most or USUAL_OUTPUT
        spare = NOTHING
        if self._last_word and not question.last_word:
            usd_then, _ = _dear(price, tokens + self._instruction)
            last = Need(
                input_tokens=tokens + self._instruction,
                output_tokens=accounts.LAST_WORD_OUTPUT,
                usd=usd_then,
                usd_per_token=rate,
            )
            spare = last.whole
        need = Need(
            input_tokens=tokens,
            output_tokens=output,
            floor=accounts.LAST_WORD_OUTPUT // 4 if question.last_word else accounts.MIN_OUTPUT,
            modest=None if cap is not None else USUAL_OUTPUT,
            usd=usd,
            usd_per_token=rate,
            spare=spare,
            last_word=question.last_word and self._root,
            priced=price is not None or self._free,
        )
        return need, bool(cap or most)

    async def _granted(self, asked: Asked, need: Need, check: Callable[[], None]) -> Grant | Short:
        """Waits while others hold what is missing; a person sees it when that lasts."""
        began, said = self._clock.monotonic(), False
        try:
            while True:
                got = await self._ledger.reserve(
                    need, call=asked.id, attempt=asked.attempt + 1, credential=asked.model.credential
                )
                waited = self._clock.monotonic() - began
                if isinstance(got, Grant) or not got.waits or waited >= LONGEST_S:
                    return got
                if waited >= TELL_S and not said:
                    said = True
                    text = f"Waits for other model calls to end: {got.explanation} ({got.fuse})."
                    self._journal.write(kinds.RunWaiting(reason="quota", text=text), turn=asked.question.turn)
                with self._control.rest():
                    await self._clock.sleep(RETRY_S)
                check()
        finally:
            if said:
                self._journal.write(kinds.RunContinued(), turn=asked.question.turn)

    # --- the run's own account ----------------------------------------------------------------------------------

    def _ceilings(self) -> accounts.Ceilings:
        return accounts.ceilings_of(self._control.limits, self._policy, root=self._root)

    def _has_room(self) -> bool:
        """Whether an answer of a model whose output cap nobody knows could not pass a limit of this run."""
        limits = self._control.limits
        return limits.max_cost is None and (limits.max_tokens is None or limits.max_tokens.value > LARGE_LIMIT)

    def _used(self) -> Amounts:
        used = self._journal.transcript.used(self._clock.now())
        return Amounts(usd=accounts.nano(used.cost or Decimal(0)), tokens=used.tokens)

    def _raised(self) -> None:
        if self._open:
            self._ledger.raised(self._ceilings())

    def _warn(self, grant: Grant, turn: int | None) -> None:
        used = self._journal.transcript.used(self._clock.now())
        for near in fuses.warnings(self._control.limits, used, grant.gauges, self._warn_calls):
            self._observe(near, turn)

    def _tell_unpriced(self, spec: ModelSpec, turn: int | None) -> None:
        """Loudly: whoever set a limit of money should know that it does not hold."""
        if self._control.limits.max_cost is None:
            return
        what = f"No price is known for {spec.model}: no limit of money holds for this run, only that of tokens"
        self._observe(Nearing(fuse="unpriced", share=0, explanation=what), turn)

    def _observe(self, near: Nearing, turn: int | None) -> None:
        """Once per fuse, also after a resume: the log knows."""
        transcript = self._journal.transcript
        if near.fuse not in transcript.warned:
            self._journal.write(kinds.VerdictIssued(**told(near.verdict(transcript.steps), ())), turn=turn)


class Prices:
    """Price and output cap of the models of one run. The catalog may have to load a library first: not on the loop."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, Price | None, int | None]] = {}

    async def of(self, spec: ModelSpec) -> "tuple[Price | None, int | None]":
        key = spec.model, spec.base_url
        at, price, most = self._known.get(key, (None, None, None))
        if at is None or time.monotonic() - at > PRICE_KEPT_S:
            price, most = await POOL.submit(lambda: _catalogued(spec))
            self._known[key] = time.monotonic(), price, most
        return price, most


def _catalogued(spec: ModelSpec) -> "tuple[Price | None, int | None]":
    from agents.errors import ConfigError
    from agents.providers import catalog

    try:
        return catalog.price(spec.model, spec.base_url), catalog.output_cap(spec.model, spec.base_url)
    except ConfigError:
        return None, None


def _dear(price: "Price | None", tokens: int) -> tuple[int, Decimal]:
    """The most that a prompt of so many tokens may cost, and a token of output after it, in billionths of a dollar."""
    if price is None:
        return 0, Decimal(0)
    rate = price
    for above, dearer in price.above:
        if tokens > above:
            rate = dearer
    per_token = max(rate.input, rate.cache_write) * 1000
    return accounts.nano(rate.request) + int(per_token * tokens) + 1, rate.output * 1000
