"""Makes a run's rows again from its log; the result equals what the appends wrote, which a test compares."""

from django.db import transaction

from agents.events import decode
from agents.spec import Status
from control.runs import folds, log, settling
from control.runs.fold import COLUMNS, Fold
from control.runs.models import Call, Receipt, Run, Verdict
from control.runs.steps import At, apply
from control.runs.tables import Writes, tables

_PAGE = 2000


def rebuild(run_id: str) -> None:
    """Fold the whole log anew and overwrite the run's columns, calls, verdicts and the receipts that the log names.

    Receipts of commands that the run never took in are no projections and stay. Raises Run.DoesNotExist.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        fold = _replay(run_id)
        if fold.row.status == Status.QUEUED.value and run.status == Status.RUNNING.value and run.lease_until:
            # A claim shows in the row before the new holder's first event does.
            fold.row.status = run.status
        settling.credit([fold])
        Run.objects.filter(pk=run_id).update(**{name: getattr(fold.row, name) for name in COLUMNS})
        Call.objects.filter(run_id=run_id).delete()
        Verdict.objects.filter(run_id=run_id).delete()
        writes = Writes()
        folds.collect(writes, run_id, fold)
        tables().write(writes)
        _receipts(run, fold)


def _replay(run_id: str) -> Fold:
    fold = Fold()
    after = 0
    while bodies := log.read_after(run_id, after, _PAGE):
        for body in bodies:
            event = decode(body)
            apply(fold, event.kind, event.data, At(event.seq, event.turn, event.call, event.at, event.ts))
        after = fold.row.last_seq
    return fold


def _receipts(run: Run, fold: Fold) -> None:
    """Those of the commands that the log names; what was taken in and not settled, as the final append settled it."""
    named = {step.command for step in fold.receipts}
    Receipt.objects.filter(run_id=run.pk, command_id__in=named).delete()
    ends = {}
    if fold.row.finished_at is not None:
        path = tuple(run.path.split("/"))
        ends[run.pk] = settling.End(status=fold.row.status, ts=fold.row.finished_at, path=path)
    settling.record({run.pk: fold.receipts}, ends, only_named=True)
