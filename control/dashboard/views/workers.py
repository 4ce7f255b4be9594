"""Workers and desks: who is there, how they fare, who went silent; and asking one to hand its runs over."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agents.spec import ACTIVE
from control.accounts import audit
from control.dashboard import rooms
from control.dashboard.fleet_rows import ALIVE
from control.dashboard.states import State
from control.runs import roster
from control.runs.clock import database_now
from control.runs.models import Run, Worker

GONE_SHOWN = timedelta(hours=24)
MOST_GONE = 50
# Who leaves says so with its last heartbeat; whoever is struck off later was lost.
_LEFT = timedelta(seconds=1)
_ACTIVE = [status.value for status in ACTIVE]

HERE = State(word="Up", icon="running", colour="completed")
DRAINING = State(word="Draining", icon="stopping", colour="stopping")
SILENT = State(word="No contact", icon="question", colour="lost")
LOST = State(word="Lost", icon="question", colour="lost")
LEFT = State(word="Left", icon="square", colour="queued")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One process. `held` counts the runs whose lease it has; `share` is how full it is, None for a desk. `why`: why
    it cannot be drained."""

    worker: Worker
    state: State
    held: int
    share: float | None
    why: str

    @property
    def busy(self) -> str:
        return "" if self.worker.load is None else f"{self.worker.load:.0%}"


def state_of(worker: Worker, now: datetime) -> State:
    if worker.gone_at is not None:
        return LEFT if worker.gone_at - worker.seen_at <= _LEFT else LOST
    if now - worker.seen_at > ALIVE:
        return SILENT
    return DRAINING if worker.draining or worker.drain_asked_at else HERE


def row_of(worker: Worker, held: dict[str, int], now: datetime) -> Row:
    state = state_of(worker, now)
    why = {HERE: "", DRAINING: "It is draining already.", SILENT: "It does not answer; its runs go on elsewhere."}
    return Row(
        worker=worker,
        state=state,
        held=held.get(worker.pk, 0),
        share=held.get(worker.pk, 0) / worker.capacity if worker.capacity and worker.kind == "worker" else None,
        why=why.get(state, "It is gone.") if worker.kind == "worker" else "Only workers hold runs.",
    )


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Those that are there, workers first; and who left or was lost in the last day."""
    now = database_now()
    counted = Run.objects.filter(status__in=_ACTIVE, worker__isnull=False, lease_until__isnull=False)
    held = dict(counted.values_list("worker").annotate(n=Count("id")).order_by())
    here = Worker.objects.filter(gone_at=None).order_by("-kind", "host", "started_at")
    gone = Worker.objects.filter(gone_at__gte=now - GONE_SHOWN).order_by("-gone_at")[:MOST_GONE]
    rows = [row_of(worker, held, now) for worker in here]
    up = [row for row in rows if row.worker.kind == "worker" and row.state is HERE]
    context = {
        "section": "workers",
        "rows": rows,
        "gone": [row_of(worker, held, now) for worker in gone],
        "up": len(up),
        "room": sum(row.worker.capacity for row in up),
        "held": sum(row.held for row in rows),
        "queued": Run.objects.filter(status="queued").count(),
        "versions": sorted({row.worker.version for row in rows if row.worker.version}),
        "now": timezone.now(),
    }
    return render(request, "workers/list.html", context)


@login_required
@require_POST
def drain(request: HttpRequest, worker: str) -> HttpResponse:
    """Ask one to take no more runs, hand over those it holds and end."""
    target = f"worker:{worker[:36]}"
    if answer := rooms.refused(request, "drain", target, "/workers/"):
        return answer
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:500] or None
    row = Worker.objects.filter(pk=worker, kind="worker").first()
    if row is None or row.gone_at is not None:
        audit.record(request, "drain", target, reason=reason, result="not_found" if row is None else "gone")
        return rooms.told(request, "This worker is gone.", "workers", good=False)
    already = row.drain_asked_at is not None
    roster.ask_to_drain([row.pk])
    audit.record(
        request,
        "drain",
        target,
        reason=reason,
        before={"draining": row.draining, "runs": row.runs},
        after={"draining": True},
        result="already_draining" if already else "ok",
    )
    text = "It was asked already." if already else f"Asked. It hands over {row.runs} runs at their next call and ends."
    return rooms.told(request, text, "workers")
