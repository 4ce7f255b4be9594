"""Numbers for Prometheus. Totals and latencies are counted from the logs, what is now is read from the record at each
scrape: so every web process tells the same, but for `web_process_` ones, which are its own."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Min, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.commands import CommandKind
from agents.spec import Status
from control.api.answers import raw
from control.api.auth import demand, identify
from control.api.errors import ApiError, error_response
from control.api.exposition import CONTENT_TYPE, Samples, counted, family
from control.incidents import figures
from control.runs import counters, line
from control.runs.families import FAMILIES
from control.runs.meter import METER
from control.runs.models import Block, Command, Receipt, Run, Worker

WINDOW = timedelta(hours=1)
MOST_RECEIPTS = 5000
QUANTILES = (0.5, 0.95, 0.99, 1.0)
KINDS = ("worker", "desk")


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text. Open on one machine; in production it needs a viewer's token, for it tells what is spent."""
    if not settings.EMBEDDED:
        try:
            demand(identify(request), "view")
        except ApiError as refusal:
            return error_response(refusal)
    return raw("".join(_all(timezone.now())).encode(), content_type=CONTENT_TYPE)


def _all(now: datetime) -> Iterable[str]:
    totals = counters.totals()
    for name in FAMILIES:
        yield counted(name, totals.get(name, {}))
    yield from _runs_now(now)
    yield from _desk_now(now)
    yield from _processes_now(now)
    yield from _this_process()


def _runs_now(now: datetime) -> Iterable[str]:
    yield family("runs", "gauge", "Runs on record, by status.", _runs())
    queue = line.queue_age()
    yield family("oldest_queued_seconds", "gauge", "How long the oldest queued run has waited.", [({}, queue.oldest_s)])
    text = "Queued runs that a limit of their agent or of the fleet keeps waiting."
    yield family("queued_held_back", "gauge", text, [({}, queue.held_back)])
    yield family("commands_open", "gauge", "Commands not finished with, by kind.", _commands())
    yield family("oldest_command_seconds", "gauge", "Age of the oldest open command, by kind.", _command_ages(now))
    yield family("blocks", "gauge", "Blocks on new starts in force.", [({}, _blocks())])
    latencies = _stop_latencies(now)
    text = "Request to verified end of an interrupt, quantiles of the last hour, per run."
    yield family("stop_last_hour_seconds", "gauge", text, _quantiles(latencies))
    yield family("stops_last_hour", "gauge", "Interrupts finished in the last hour.", [({}, len(latencies))])
    text = "Events in the logs that the totals above do not hold yet; a growing number means that no desk counts."
    yield family("uncounted_events", "gauge", text, [({}, counters.lag())])


def _desk_now(now: datetime) -> Iterable[str]:
    """What the desk has on record; these are gauges, for retention takes old rows away."""
    text = "Incidents that are not resolved, by severity and state."
    yield family("incidents_open", "gauge", text, figures.incidents())
    text = "Age of the oldest incident that nobody has acknowledged."
    yield family("incident_unacknowledged_seconds", "gauge", text, [({}, figures.unacknowledged_s(now))])
    text = "Alert deliveries on record, by transport and result; due and sending ones are under way."
    yield family("deliveries", "gauge", text, figures.deliveries())
    text = "How long the oldest alert delivery that is not settled has been due."
    yield family("delivery_overdue_seconds", "gauge", text, [({}, figures.overdue_s(now))])


def _processes_now(now: datetime) -> Iterable[str]:
    yield family("processes", "gauge", "Processes seen within the lease time, by kind.", _workers(now))
    text = "Time since the last sign of life, of the freshest and of the stalest process on the roster."
    yield family("heartbeat_age_seconds", "gauge", text, _ages(now))
    held = Worker.objects.filter(kind="worker", gone_at=None).aggregate(runs=Sum("runs"), room=Sum("capacity"))
    yield family("worker_runs", "gauge", "Runs that workers hold.", [({}, held["runs"] or 0)])
    yield family("worker_capacity", "gauge", "Runs that workers could hold.", [({}, held["room"] or 0)])


def _this_process() -> Iterable[str]:
    """Scrape every web process by itself for these: behind a balancer each scrape may meet another one."""
    own = "by the web process that answers this scrape"
    yield family("web_process_start_time_seconds", "gauge", "When it started.", [({}, METER.started_at)])
    yield family("web_process_frames_total", "counter", f"Frames sent {own}.", [({}, METER.frames)])
    yield family("web_process_frame_bytes_total", "counter", f"Bytes of frames sent {own}.", [({}, METER.frame_bytes)])
    text = f"Slow viewers told to start again {own}."
    yield family("web_process_resyncs_total", "counter", text, [({}, METER.resyncs)])
    yield family("web_process_sockets", "gauge", f"Sockets held open {own}.", [({}, METER.sockets)])


def _runs() -> Samples:
    found = dict(Run.objects.values_list("status").annotate(Count("pk")))
    return [({"status": status.value}, found.get(status.value, 0)) for status in Status]


def _workers(now: datetime) -> Samples:
    recent = Worker.objects.filter(gone_at__isnull=True, seen_at__gte=now - timedelta(seconds=settings.LEASE_SECONDS))
    found = dict(recent.values_list("kind").annotate(Count("pk")))
    return [({"kind": kind}, found.get(kind, 0)) for kind in KINDS]


def _ages(now: datetime) -> Samples:
    there = Worker.objects.filter(gone_at__isnull=True).values_list("kind")
    for kind, newest, oldest in there.annotate(Max("seen_at"), Min("seen_at")).order_by("kind"):
        yield {"kind": kind, "which": "freshest"}, max(0.0, (now - newest).total_seconds())
        yield {"kind": kind, "which": "stalest"}, max(0.0, (now - oldest).total_seconds())


def _commands() -> Samples:
    found = dict(Command.objects.filter(open=True).values_list("kind").annotate(Count("pk")))
    return [({"kind": kind.value}, found.get(kind.value, 0)) for kind in CommandKind]


def _command_ages(now: datetime) -> Samples:
    found = dict(Command.objects.filter(open=True).values_list("kind").annotate(Min("issued_at")))
    for kind in CommandKind:
        since = found.get(kind.value)
        yield {"kind": kind.value}, max(0.0, (now - since).total_seconds()) if since else 0.0


def _blocks() -> int:
    return Block.objects.filter(lifted_at__isnull=True).count()


def _stop_latencies(now: datetime) -> list[float]:
    """Seconds from the request to the end, one for each run that an interrupt of the last hour has ended."""
    recent = Command.objects.filter(kind=CommandKind.INTERRUPT, issued_at__gte=now - WINDOW)
    asked = dict(recent.order_by("-issued_at").values_list("pk", "issued_at")[:MOST_RECEIPTS])
    ended = Receipt.objects.filter(command_id__in=list(asked), done_at__isnull=False).values_list(
        "command_id", "done_at"
    )
    return sorted(max(0.0, (done - asked[command]).total_seconds()) for command, done in ended if done)


def _quantiles(values: list[float]) -> Samples:
    if not values:
        return []
    last = len(values) - 1
    return [({"quantile": f"{q:g}"}, values[round(q * last)]) for q in QUANTILES]
