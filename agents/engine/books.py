"""Accounts in this process: what a lone run and its sub-agents are paid from."""

from collections.abc import Sequence
from dataclasses import replace

from agents.ids import new_id
from agents.policy.accounts import (
    NOTHING,
    Account,
    Amounts,
    Ceilings,
    Grant,
    Need,
    Short,
    fit,
    gauges,
    run_key,
    tight,
)
from agents.spec import RunSpec


class MemoryBook:
    """The accounts of one tree of runs, or of several. No call of it awaits, so none comes between another's steps."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}

    def of(self, spec: RunSpec) -> "MemoryLedger":
        """The ledger of one run; those of the runs above it must be in the same book to be shared."""
        return MemoryLedger(self, [run_key(run) for run in spec.path])

    def hold(self, keys: Sequence[str], amounts: Amounts) -> None:
        for key in keys:
            self.accounts[key] = self.accounts[key].hold(amounts)

    def settle(self, keys: Sequence[str], held: Amounts, spent: Amounts) -> None:
        for key in keys:
            self.accounts[key] = self.accounts[key].settle(held, spent)


class MemoryLedger:
    """Implements `ports.Ledger`."""

    def __init__(self, book: MemoryBook, keys: Sequence[str]) -> None:
        self._book = book
        self._keys = keys
        self._own = keys[-1]
        self._open: dict[str, tuple[str, ...]] = {}

    def open(self, ceilings: Ceilings, used: Amounts) -> None:
        if self._own not in self._book.accounts:
            self._book.accounts[self._own] = Account(key=self._own, limit=ceilings, spent=used)
        self.raised(ceilings)

    def raised(self, ceilings: Ceilings) -> None:
        self._book.accounts[self._own] = replace(self._book.accounts[self._own], limit=ceilings)

    async def reserve(self, need: Need, *, call: str, attempt: int, credential: str | None) -> Grant | Short:
        book = self._book
        spare = NOTHING if need.last_word else need.spare
        book.accounts[self._own] = replace(book.accounts[self._own], spare=spare)
        keys = tuple(key for key in self._keys if key in book.accounts)
        output = fit(need, [book.accounts[key] for key in keys], self._own)
        if isinstance(output, Short):
            return output
        told = gauges(book.accounts[self._own])
        held, id = need.amounts(output), new_id()
        book.hold(keys, held)
        self._open[id] = keys
        near = output < need.output_tokens or tight([book.accounts[key] for key in keys])
        return Grant(id=id, output_tokens=output, held=held, tight=near, gauges=told)

    def settle(self, grant: Grant, spent: Amounts) -> None:
        keys = self._open.pop(grant.id, ())
        self._book.settle(keys, grant.held, spent)

    async def close(self) -> None:
        pass
