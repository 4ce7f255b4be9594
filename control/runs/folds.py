"""Folds between appends: kept in memory while this process is the run's only writer, else read from the rows.

A fold is kept under its `last_seq`. A log position determines the fold, so a kept one is used only if the row says
the same position; if another process has appended in between it is read again.
"""

from collections import OrderedDict
from threading import Lock

from django.db import transaction

from agents.commands import CommandKind
from control.runs.fold import COLUMNS, CallRow, Columns, Fold
from control.runs.models import Call, Command, Receipt, Run
from control.runs.tables import Writes

_KEPT_RUNS = 2000
_PENDING_KINDS = [
    kind.value for kind in (CommandKind.STEER, CommandKind.PAUSE, CommandKind.UNPAUSE, CommandKind.ANSWER)
] + [CommandKind.RAISE.value, CommandKind.INTERRUPT.value]

_kept: OrderedDict[str, Fold] = OrderedDict()
# Guards `_kept` alone: the group writer and request threads append from several threads.
_lock = Lock()


def load(run: str, *, status: str, last_seq: int) -> Fold:
    """The fold at this position. A claim shows in `status` before its first event does, so the row's word counts."""
    with _lock:
        fold = _kept.pop(run, None)
    if fold is None or fold.row.last_seq != last_seq:
        fold = from_rows(run)
    fold.row.status = status
    return fold


def keep(run: str, fold: Fold) -> None:
    """Keep the fold once the transaction has committed; of one that is rolled back nothing remains."""
    if not fold.final:
        transaction.on_commit(lambda: put(run, fold))


def put(run: str, fold: Fold) -> None:
    """Keep the fold of a run that goes on; its transaction has committed."""
    with _lock:
        _kept[run] = fold
        _kept.move_to_end(run)
        while len(_kept) > _KEPT_RUNS:
            _kept.popitem(last=False)


def from_rows(run: str) -> Fold:
    """The fold as the rows hold it: columns, open calls, commands taken in and not settled."""
    columns = Run.objects.values(*COLUMNS).get(pk=run)
    fold = Fold(row=Columns(**columns))
    if fold.final:
        return fold
    for call in Call.objects.filter(run_id=run, status=None).order_by("started_seq"):
        fold.open[call.id] = _open(call)
    taken = Receipt.objects.filter(run_id=run, state__in=["delivered", "stopping"]).order_by(
        "delivered_at", "command_id"
    )
    ids = [receipt.command_id for receipt in taken]
    known = dict(Command.objects.filter(pk__in=ids, kind__in=_PENDING_KINDS).values_list("id", "kind"))
    fold.pending = {command: known[command] for command in ids if command in known}
    return fold


def _open(call: Call) -> CallRow:
    names = [name for name in CallRow.__dataclass_fields__ if name not in ("id", "stored")]
    return CallRow(id=call.id, stored=True, **{name: getattr(call, name) for name in names})


def collect(writes: Writes, run: str, fold: Fold) -> None:
    """Add the rows of calls and verdicts that this fold has touched."""
    writes.calls += [(run, call) for call in fold.touched.values()]
    writes.verdicts += [(run, verdict) for verdict in fold.verdicts]
    writes.late += [(status, run, call) for call, status in fold.late]
