"""The append-only log of each run: the only way to write an event, and the fence around it.

One transaction allocates `seq` where the epoch is the writer's, inserts the events and writes the projections.
A batch that is fenced off changes nothing and leaves the other runs' batches alone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections, transaction
from django.db.models import F

from agents.events import Draft, draft, opening, stamp
from agents.kinds import FINAL_KINDS, Body, RunRequeued
from agents.spec import FINAL, Status
from control.runs import folds, hints, settling
from control.runs.clock import database_now
from control.runs.fold import Fold
from control.runs.models import Run
from control.runs.steps import At, apply
from control.runs.tables import EventRow, Head, Tables, Writes, tables

_FINAL = frozenset(status.value for status in FINAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events of one run, in order, by the writer that holds it at `epoch`."""

    run: str
    root: str
    epoch: int
    drafts: Sequence[Draft]


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What became of one batch: first and last `seq` and the envelopes as stored; `fenced` ones were not written."""

    run: str
    first: int
    last: int
    bodies: list[bytes]
    fenced: bool


# These change nothing but the log and its rows. What other kinds bring about goes through the ORM.
_PLAIN = frozenset(
    {"turn.started", "turn.completed", "call.started", "call.retried", "call.completed", "batch.planned"}
)


def append(batches: Sequence[Batch]) -> list[Appended]:
    """Write these batches in one transaction; one `Appended` per batch, in the same order."""
    here = connections["default"]
    if not here.in_atomic_block and _PLAIN.issuperset([item.kind for batch in batches for item in batch.drafts]):
        return _append_plain(batches, tables(here))
    with transaction.atomic():
        return write(batches)


def _append_plain(batches: Sequence[Batch], store: Tables) -> list[Appended]:
    """The same without the ORM's part in a transaction: what it costs shows where commits are small and many."""
    try:
        heads, now = store.begin(sorted({batch.run for batch in batches}))
        done, writes, written = _fold_all(batches, store, heads, now)
        store.write(writes, commit=True)
    except BaseException:
        store.roll_back()
        raise
    for run, fold in written.items():
        fold.written()
        folds.put(run, fold)
    return done


def write(batches: Sequence[Batch]) -> list[Appended]:
    """`append` for a caller that has a transaction open already."""
    store = tables()
    heads, now = store.heads(sorted({batch.run for batch in batches}))
    done, writes, written = _fold_all(batches, store, heads, now)
    if not written:
        return done
    store.write(writes)
    settling.settle(written, {run for run, _, _, ended in writes.runs if ended}, now)
    for run, fold in written.items():
        fold.written()
        folds.keep(run, fold)
    return done


def _fold_all(
    batches: Sequence[Batch], store: Tables, heads: Mapping[str, Head], now: datetime
) -> tuple[list[Appended], Writes, dict[str, Fold]]:
    """What became of the batches, what is to be written, and the folds of the runs that have something new."""
    open_folds: dict[str, Fold] = {}
    writes = Writes()
    done = [_fold_in(batch, heads, open_folds, now, writes.events, store) for batch in batches]
    written = {run: fold for run, fold in open_folds.items() if fold.row.last_seq > heads[run][3]}
    settling.credit(written.values())
    for run, fold in written.items():
        ended = fold.final and heads[run][2] not in _FINAL
        writes.runs.append((run, fold.row, fold.reshaped, ended))
        folds.collect(writes, run, fold)
    return done, writes, written


def _fold_in(
    batch: Batch,
    heads: Mapping[str, Head],
    open_folds: dict[str, Fold],
    now: datetime,
    rows: list[EventRow],
    store: Tables,
) -> Appended:
    found = heads.get(batch.run)
    if found is None or found[1] != batch.epoch:
        return _fenced(batch)
    run, root = batch.run, batch.root
    fold = open_folds.get(run)
    if fold is None:
        fold = open_folds[run] = folds.load(run, status=found[2], last_seq=found[3])
    if not _in_order(batch.drafts, fold.final):
        return _fenced(batch)
    # The log's times never run backwards, also where the database read its clock before it got the lock.
    ts = max(now, fold.row.last_activity_at or now)
    stamped = stamp(ts)
    moment, stored_ts = store.moment, store.moment(ts, stamped)
    head, wire_ts = opening(run, root), stamped.encode()
    bodies = []
    first = seq = fold.row.last_seq
    at = At(seq, None, None, ts, ts)
    # The hot loop of every worker: what is the same for all of the batch is made outside of it.
    for item in batch.drafts:
        seq += 1
        kind = item.kind
        at.seq, at.turn, at.call, at.at = seq, item.turn, item.call, item.at
        apply(fold, kind, item.body, at)
        body = b"%b%d%b%b%b" % (head, seq, item.middle, wire_ts, item.tail)
        rows.append((run, seq, kind, item.turn, item.call, moment(item.at, item.stamped), stored_ts, body.decode()))
        bodies.append(body)
    return Appended(run=run, first=first + 1, last=seq, bodies=bodies, fenced=False)


def _fenced(batch: Batch) -> Appended:
    return Appended(run=batch.run, first=0, last=0, bodies=[], fenced=True)


def _in_order(drafts: Sequence[Draft], final: bool) -> bool:
    """Whether nothing but `call.late` follows the final event."""
    for item in drafts:
        if final and item.kind != "call.late":
            return False
        final = final or item.kind in FINAL_KINDS
    return True


# --- for whoever ends or requeues a run that nobody holds ----------------------------------------------------------


def append_as_owner(
    run_id: str,
    *,
    expect: Collection[Status],
    body: Body,
    before: Sequence[Draft] = (),
    epoch: int | None = None,
    unheld: bool = False,
    changes: Mapping[str, Any] | None = None,
) -> bool:
    """Take the run over by raising its epoch and append `before` and `body`; False if somebody else was faster.

    Succeeds only while the status is one of `expect`, the epoch (if given) is still this one, and, with `unheld`,
    nobody has a lease. The lease ends; `changes` sets further columns. Publishes the hint after commit.
    A `run.requeued` body must carry the epoch that it leads to: `epoch + 1`.
    """
    columns: dict[str, Any] = {"lease_until": None, **(changes or {})}
    if isinstance(body, RunRequeued):
        columns.setdefault("worker", None)
    with transaction.atomic():
        wanted = Run.objects.filter(pk=run_id, status__in=[str(status) for status in expect])
        if epoch is not None:
            wanted = wanted.filter(epoch=epoch)
        if unheld:
            wanted = wanted.filter(lease_until=None)
        if not wanted.update(epoch=F("epoch") + 1, **columns):
            return False
        root, now_at = Run.objects.values_list("root", "epoch").get(pk=run_id)
        drafts = [*before, draft(body, at=before[-1].at if before else database_now())]
        done = write([Batch(run=run_id, root=root, epoch=now_at, drafts=drafts)])[0]
        if done.fenced:
            raise RuntimeError(f"run {run_id} took no event at its own epoch {now_at}")
        hints.announce_later(root, now_at, done.run, done.first, done.last, done.bodies)
        return True


# --- reading ---------------------------------------------------------------------------------------------------------


def read_after(run: str, after: int, limit: int) -> list[bytes]:
    """Envelopes with `seq` greater than `after`, in order, as they were stored."""
    return tables().bodies(run, after, limit)


def head(run: str) -> tuple[int, int]:
    """`(last_seq, epoch)`; `(0, 0)` for an unknown run."""
    found = Run.objects.filter(pk=run).values_list("last_seq", "epoch").first()
    return found or (0, 0)
