"""The models of one run and the keys that go with them: implements `ports.Models` over the credential pool."""

import asyncio
import logging
import random
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation

from agents.errors import ConfigError
from agents.policy.credentials import Report, Rest
from agents.policy.redaction import make_safe
from agents.ports import ChatModel, KeyReport, Picked, Resting
from agents.providers import connect
from agents.spec import ModelSpec, RunSpec
from control.fleet import credentials, pool
from control.fleet.credentials import CredentialError
from control.runs.dbthreads import DbThreads

logger = logging.getLogger(__name__)

# How long a report of a failure is waited for, so that the next pick knows of it; it goes on by itself after that.
REPORT_WAIT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A credential that may be used now, with its key, which no repr shows; neither for a model that needs none."""

    label: str | None = None
    key: str | None = field(default=None, repr=False)


class PooledModels:
    """One per run, used on the host's loop; the database is reached through the host's threads.

    A run stays with a key while that may be used, because providers keep their caches per account; a new run gets the
    key whose turn it is. A key that its source has changed is read anew.
    """

    def __init__(self, spec: RunSpec, database: DbThreads, *, jitter: Callable[[], float] = random.random) -> None:
        self._models = (spec.model, *spec.fallbacks)
        self._rotate = may_rotate(spec)
        self._database = database
        self._jitter = jitter
        self._last: list[str] = []  # labels by last use, the latest first
        self._connected: dict[ModelSpec, tuple[str | None, ChatModel]] = {}
        self._reports: set[asyncio.Task[None]] = set()

    async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Picked | Resting:
        """Never raises but IndexError: what is wrong with a credential is a rest that tells what to do about it."""
        if not 0 <= place < len(self._models):
            raise IndexError(f"the run has {len(self._models)} models")
        # What this run has told must count for what it gets.
        await self.settled(REPORT_WAIT_S)
        model, passed, troubles = self._models[place], set(avoid), list[str]()
        while True:
            ready = await self._database.patiently(
                find, model, rotate=self._rotate, avoid=passed, last=tuple(self._last), jitter=self._jitter()
            )
            if isinstance(ready, Rest):
                return Resting(until=ready.until, why="; ".join([*troubles, ready.why]))
            spec = replace(model, credential=ready.label)
            try:
                chat = self._connect(spec, ready.key)
            except ConfigError as error:
                if ready.label is None:
                    return Resting(until=None, why=error.message)
                troubles.append(f"{ready.label}: {error.message}")
                passed.add(ready.label)
                continue
            self._remember(ready.label)
            return Picked(model=chat, spec=spec, credential=ready.label)

    async def report(self, report: KeyReport) -> None:
        """A success is taken down beside the run; a failure is waited for a moment. Never raises."""
        if report.credential is None:
            return
        task = asyncio.get_running_loop().create_task(self._take_down(report), name="credential report")
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)
        if report.reason is not None:
            # A stop of the run ends the waiting, not the report.
            await asyncio.wait({task}, timeout=REPORT_WAIT_S)

    async def settled(self, within_s: float) -> None:
        """Wait until all reports are durable, if that is soon."""
        if self._reports:
            await asyncio.wait(set(self._reports), timeout=within_s)

    async def _take_down(self, report: KeyReport) -> None:
        try:
            await self._database.patiently(take_down, report)
        except Exception:
            logger.exception("what befell credential %s is lost", report.credential)

    def _connect(self, spec: ModelSpec, key: str | None) -> ChatModel:
        known = self._connected.get(spec)
        if known is None or known[0] != key:
            known = self._connected[spec] = (key, connect(spec, key))
        return known[1]

    def _remember(self, label: str | None) -> None:
        if label is not None and self._last[:1] != [label]:
            self._last = [label, *(other for other in self._last if other != label)]


def may_rotate(spec: RunSpec) -> bool:
    """Whether a credential that the run names may be stood in for by others that fit: its policy must say so."""
    return spec.policy_body.get("credentials") == "rotate"


def check(spec: RunSpec) -> None:
    """Blocking. Whether the run can begin at all. Raises ConfigError for a model that cannot be connected to, and for
    credentials of which none has a key."""
    try:
        pool_of = credentials.pool_of(spec.model, rotate=may_rotate(spec))
        connect(spec.model, None)
        troubles = []
        for credential in pool_of:
            try:
                connect(spec.model, credential.read_key())
                return
            except CredentialError as error:
                troubles.append(ConfigError(error.code, error.message))
            except ConfigError as error:
                troubles.append(ConfigError(error.kind, f"Credential {credential.label}: {error.message}"))
        if troubles:
            raise troubles[0]
    except CredentialError as error:
        raise ConfigError(error.code, error.message) from error


def find(model: ModelSpec, *, rotate: bool, avoid: Set[str], last: tuple[str, ...], jitter: float) -> Ready | Rest:
    """Blocking. A key for one model that may be used now; the named one, then those last used, then by turn."""
    try:
        fit = credentials.pool_of(model, rotate=rotate)
    except CredentialError as error:
        return Rest(until=None, why=error.message)
    if not fit:
        return Ready()
    own = [] if model.credential is None else [model.credential]
    troubles: list[str] = []
    while True:
        label = pool.take(fit, avoid, [*own, *last], jitter)
        if isinstance(label, Rest):
            return Rest(until=label.until, why="; ".join([*troubles, label.why]))
        credential = next(one for one in fit if one.label == label)
        try:
            return Ready(label=label, key=credential.read_key())
        except CredentialError as error:
            troubles.append(error.message)
            # Without a key it is no member of the pool, so nobody waits for it.
            fit = [one for one in fit if one.label != label]
            if not fit:
                return Rest(until=None, why="; ".join(troubles))


def take_down(report: KeyReport) -> None:
    """Blocking. One report into the pool."""
    label = report.credential or ""
    try:
        known = credentials.all_of().get(label)
    except CredentialError:
        known = None
    told = Report(reason=report.reason, cooldown_s=report.cooldown_s, said=make_safe(report.said).text)
    pool.report(label, known, told, _dollars(report.spent_usd))


def _dollars(text: str | None) -> Decimal:
    """What is no amount counts as nothing known."""
    try:
        amount = Decimal(text or 0)
    except InvalidOperation:
        return Decimal(0)
    return amount if amount.is_finite() and amount > 0 else Decimal(0)
