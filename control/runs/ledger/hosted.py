"""The ledger of one run that this worker drives: it holds a little more than one call's need where there is plenty.

Far from every limit one round trip to the database pays for several calls; what is held for calls to come is given back
when none has come for a while, and when the run ends. Near a limit every call holds exactly its own need.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.ids import new_id
from agents.policy.accounts import NOTHING, Amounts, Ceilings, Gauge, Grant, Need, Short, run_key
from agents.ports import Clock
from agents.spec import RunSpec
from control.runs.dbthreads import DbThreads
from control.runs.ledger import book, orphans, standing
from control.runs.ledger.book import Hold, Order
from control.runs.ledger.settler import settler_of

logger = logging.getLogger(__name__)

# What is held for calls to come is given back after this long without one.
IDLE_S = 2.0
# Nor is it kept for longer than this: what others see as spent, and what this run sees of limits, is never older.
FRESH_S = 10.0
CLOSE_WAIT_S = 2.0


@dataclass(slots=True, kw_only=True)
class Ahead:
    """A reservation for several calls of one key. `left` may still be handed out; `busy` is what calls under way have
    of it (`out` of them, `call` the latest), `used` what the others came to. `last`: when it was touched."""

    id: str
    credential: str | None
    amounts: Amounts
    left: Amounts
    gauges: Mapping[str, Gauge]
    since: float
    last: float
    busy: Amounts = NOTHING
    used: Amounts = NOTHING
    out: int = 0
    call: tuple[str, int] = ("", 0)

    def take(self, whole: Amounts, call: tuple[str, int], now: float) -> None:
        self.left, self.busy = self.left - whole, self.busy + whole
        self.out, self.call, self.last = self.out + 1, call, now

    def back(self, held: Amounts, spent: Amounts, now: float) -> None:
        self.left, self.busy, self.used = self.left + held - spent, self.busy - held, self.used + spent
        self.out, self.last = self.out - 1, now

    def told(self) -> dict[str, Gauge]:
        """The fuses with what was used since they were read."""
        used = {"max_cost": self.used.usd, "max_tokens": self.used.tokens, "max_model_calls": self.used.calls}
        return {name: replace(one, used=one.used + used.get(name, 0)) for name, one in self.gauges.items()}


class HostLedger:
    """Implements `ports.Ledger`; on the host's loop only."""

    def __init__(self, spec: RunSpec, database: DbThreads, clock: Clock, *, worker: str, epoch: int) -> None:
        self._spec = spec
        self._database = database
        self._clock = clock
        self._worker = worker
        self._epoch = epoch
        self._own = run_key(spec.id)
        # What the next order tells of the run's own account: once.
        self._ceilings: Ceilings | None = Ceilings()
        self._used = NOTHING
        self._ahead: Ahead | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._orders: set[asyncio.Task[Hold | Short]] = set()
        self._tail: asyncio.Task[None] | None = None

    def open(self, ceilings: Ceilings, used: Amounts) -> None:
        self._ceilings, self._used = ceilings, used

    def raised(self, ceilings: Ceilings) -> None:
        """At once: sub-agents may wait for it, and this run for them."""
        if self._ceilings is not None:
            self._ceilings = ceilings
        self._soon(book.limit, self._own, ceilings)

    async def reserve(self, need: Need, *, call: str, attempt: int, credential: str | None) -> Grant | Short:
        now, named = self._clock.monotonic(), (call, attempt)
        ahead = self._ahead
        if ahead is not None and _pays(ahead, need, credential, now):
            ahead.take(need.whole, named, now)
            return _grant(ahead.id, need.output_tokens, need.whole, False, ahead.told())
        await self._settled()
        closing, ahead = None, self._ahead
        if ahead is not None and not ahead.out:
            self._ahead, closing = None, (ahead.id, ahead.used)
        order = Order(
            id=new_id(),
            run=self._spec.id,
            epoch=self._epoch,
            worker=self._worker,
            call=call,
            attempt=attempt,
            at=self._clock.now(),
            need=need,
            own=self._own,
            accounts={run_key(run): None for run in self._spec.path} | {self._own: self._ceilings},
            opening=self._opening,
            several=self._ahead is None and not need.last_word,
            closing=closing,
        )
        got = await self._ordered(order, credential)
        self._ceilings = None
        if isinstance(got, Short):
            return got
        if got.amounts == need.amounts(got.output):
            return _grant(got.id, got.output, got.amounts, got.tight, got.gauges)
        now = self._clock.monotonic()
        self._ahead = ahead = Ahead(
            id=got.id,
            credential=credential,
            amounts=got.amounts,
            left=got.amounts,
            gauges=got.gauges,
            since=now,
            last=now,
        )
        ahead.take(need.whole, named, now)
        self._look_in(IDLE_S)
        return _grant(got.id, got.output, need.whole, got.tight, got.gauges)

    def settle(self, grant: Grant, spent: Amounts) -> None:
        ahead = self._ahead
        if ahead is not None and ahead.id == grant.id:
            ahead.back(grant.held, spent, self._clock.monotonic())
        else:
            self._soon(book.settle, grant.id, spent)

    async def close(self) -> None:
        """Give back what is held for calls to come; wait a moment until all is settled. What is not by then, the
        sweeper finds."""
        if self._timer is not None:
            self._timer.cancel()
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            # A call that nobody has told the end of counts whole.
            self._soon(book.settle, ahead.id, ahead.used + ahead.busy)
        if self._orders:
            await asyncio.wait(set(self._orders), timeout=CLOSE_WAIT_S)
        if self._tail is not None:
            await asyncio.wait({self._tail}, timeout=CLOSE_WAIT_S)

    # --- the database ---------------------------------------------------------------------------------------------

    async def _ordered(self, order: Order, credential: str | None) -> Hold | Short:
        """A hold that comes when nobody waits for it any more is given back."""
        work = self._database.patiently(_place, order, self._spec.agent, credential)
        task = asyncio.get_running_loop().create_task(work, name="reservation")
        self._orders.add(task)
        task.add_done_callback(self._orders.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._unwanted)
            raise

    def _unwanted(self, task: "asyncio.Task[Hold | Short]") -> None:
        if task.cancelled() or task.exception() is not None:
            return
        if isinstance(got := task.result(), Hold):
            self._soon(book.settle, got.id, NOTHING)

    def _opening(self, key: str) -> Amounts:
        return self._used if key == self._own else standing.opening(key)

    async def _settled(self) -> None:
        """What this run has spent must count for what it gets."""
        if self._tail is not None:
            await asyncio.wait({self._tail})

    def _soon(self, work: Callable[..., object], *args: Any) -> None:
        """One after the other, in this order."""
        before = {task for task in (self._tail, *self._orders) if task is not None and not task.done()}
        self._tail = asyncio.get_running_loop().create_task(self._do(before, work, args), name="ledger")

    async def _do(self, before: "set[asyncio.Task[Any]]", work: Callable[..., object], args: tuple[Any, ...]) -> None:
        if before:
            await asyncio.wait(before)
        try:
            if work is book.settle:
                await settler_of(self._database).settle(*args)
            else:
                await self._database.patiently(work, *args)
        except Exception:
            logger.exception("run %s: its accounts are not up to date; the sweeper settles what is open", self._spec.id)

    # --- what is held ahead ---------------------------------------------------------------------------------------

    def _look_in(self, in_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(in_s, self._give_back_idle)

    def _give_back_idle(self) -> None:
        ahead = self._ahead
        if ahead is None:
            return
        idle_s = self._clock.monotonic() - ahead.last
        if idle_s < IDLE_S:
            self._look_in(IDLE_S - idle_s + 0.01)
        elif not ahead.out:
            self._ahead = None
            self._soon(book.settle, ahead.id, ahead.used)
        elif ahead.out == 1:
            # A long call: what it needs itself stays, under its own name.
            self._ahead = None
            self._soon(book.shrink, ahead.id, ahead.amounts, ahead.busy, ahead.used, *ahead.call)
        else:
            self._look_in(IDLE_S)


def _place(order: Order, agent: str, credential: str | None) -> Hold | Short:
    """Blocking. The accounts beside those of the tree are looked up here."""
    if order.accounts[order.own] is not None and order.epoch > 1:
        orphans.settle_before(order.run, order.epoch)
    beside = standing.accounts(agent, credential, order.at)
    got = book.reserve(replace(order, accounts={**order.accounts, **beside}))
    if isinstance(got, Short) and got.key.startswith("credential:"):
        return replace(got, until=standing.ends(got.key, order.at))
    return got


def _pays(ahead: Ahead, need: Need, credential: str | None, now: float) -> bool:
    fits = ahead.left.covers(need.whole) and ahead.credential == credential and need.priced
    return fits and not need.last_word and now - ahead.since < FRESH_S


def _grant(id: str, output: int, held: Amounts, tight: bool, gauges: Mapping[str, Gauge]) -> Grant:
    return Grant(id=id, output_tokens=output, held=held, tight=tight, gauges=gauges)
