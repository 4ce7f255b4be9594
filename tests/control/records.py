"""Plain factories for the record: rows as a start would leave them, and batches as a worker would write them."""

from datetime import UTC, datetime, timedelta

from agents.events import Draft, draft
from agents.ids import new_id
from agents.kinds import Body, RunQueued
from agents.spec import Status
from control.runs import log
from control.runs.models import Run


def make_run(*, parent: Run | None = None, held: bool = True, status: Status | None = None, **columns: object) -> Run:
    """A run with `run.queued` in its log; `held` ones have a lease at epoch 1, as after a claim."""
    pk = new_id()
    now = datetime.now(UTC)
    run = Run(
        pk=pk,
        root=parent.root if parent else pk,
        parent=parent.pk if parent else None,
        path=f"{parent.path}/{pk}" if parent else pk,
        owner="ann",
        agent="default",
        task="do it",
        created_at=now,
    )
    for name, value in columns.items():
        setattr(run, name, value)
    run.save(force_insert=True)
    write(run, RunQueued(agent="default", task="do it", labels={}))
    changes: dict[str, object] = {}
    if held:
        changes = {
            "epoch": 1,
            "worker": "w-1",
            "lease_until": now + timedelta(seconds=60),
            "status": Status.RUNNING.value,
        }
    if status is not None:
        changes["status"] = status.value
    if changes:
        Run.objects.filter(pk=pk).update(**changes)
    run.refresh_from_db()
    return run


def drafts(*bodies: Body, turn: int | None = None, call: str | None = None) -> list[Draft]:
    return [draft(body, at=datetime.now(UTC), turn=turn, call=call) for body in bodies]


def batch(run: Run, *items: Draft, epoch: int | None = None) -> log.Batch:
    return log.Batch(run=run.pk, root=run.root, epoch=run.epoch if epoch is None else epoch, drafts=items)


def write(run: Run, *bodies: Body, turn: int | None = None, call: str | None = None) -> log.Appended:
    """Append these bodies as the run's holder at the epoch of this object."""
    return log.append([batch(run, *drafts(*bodies, turn=turn, call=call))])[0]
