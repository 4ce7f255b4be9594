"""Numbers for Prometheus, read from the record at each scrape, so that every web process tells the same."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.commands import CommandKind
from agents.spec import Status
from control.api.answers import raw
from control.api.auth import demand, identify
from control.api.errors import ApiError, error_response
from control.runs.models import Block, Command, Receipt, Run, Worker

WINDOW = timedelta(hours=1)
MOST_RECEIPTS = 5000
QUANTILES = (0.5, 0.9, 0.99, 1.0)
Samples = Iterable[tuple[dict[str, str], float]]


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text. Open on one machine; in production it needs a viewer's token, for it tells what is spent."""
    if not settings.EMBEDDED:
        try:
            demand(identify(request), "view")
        except ApiError as refusal:
            return error_response(refusal)
    return raw("".join(_all(timezone.now())).encode(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _all(now: datetime) -> Iterable[str]:
    yield _family("pilothouse_runs", "gauge", "Runs by status.", _runs())
    yield _family("pilothouse_tokens_total", "counter", "Tokens of all runs on record.", _tokens())
    yield _family("pilothouse_cost_usd_total", "counter", "Known cost of all runs on record.", _cost())
    yield _family("pilothouse_workers", "gauge", "Processes seen within the lease time, by kind.", _workers(now))
    yield _family("pilothouse_worker_age_seconds", "gauge", "Time since the newest sign of life.", _ages(now))
    yield _family("pilothouse_commands_open", "gauge", "Commands not finished with, by kind.", _commands())
    yield _family("pilothouse_blocks", "gauge", "Blocks on new starts in force.", [({}, _blocks())])
    latencies = _stop_latencies(now)
    yield _family(
        "pilothouse_stop_seconds",
        "gauge",
        "Request to verified end of an interrupt, quantiles of the last hour.",
        _quantiles(latencies),
    )
    yield _family("pilothouse_stops", "gauge", "Interrupts finished in the last hour.", [({}, len(latencies))])
    yield _family("pilothouse_oldest_queued_seconds", "gauge", "Age of the oldest queued run.", [({}, _queued(now))])


def _family(name: str, kind: str, text: str, samples: Samples) -> str:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{word}"' for key, word in labels.items())
        lines.append(f"{name}{{{inner}}} {value:g}" if inner else f"{name} {value:g}")
    return "\n".join(lines) + "\n"


def _runs() -> Samples:
    counted = dict(Run.objects.values_list("status").annotate(Count("pk")))
    return [({"status": status.value}, counted.get(status.value, 0)) for status in Status]


def _tokens() -> Samples:
    found = Run.objects.aggregate(input=Sum("input_tokens"), output=Sum("output_tokens"))
    return [({"direction": name}, found[name] or 0) for name in ("input", "output")]


def _cost() -> Samples:
    return [({}, float(Run.objects.aggregate(sum=Sum("cost_usd"))["sum"] or 0))]


def _workers(now: datetime) -> Samples:
    recent = Worker.objects.filter(gone_at__isnull=True, seen_at__gte=now - timedelta(seconds=settings.LEASE_SECONDS))
    counted = dict(recent.values_list("kind").annotate(Count("pk")))
    return [({"kind": kind}, counted.get(kind, 0)) for kind in ("worker", "desk")]


def _ages(now: datetime) -> Samples:
    newest = dict(Worker.objects.filter(gone_at__isnull=True).values_list("kind").annotate(Max("seen_at")))
    return [({"kind": kind}, max(0.0, (now - seen).total_seconds())) for kind, seen in sorted(newest.items())]


def _commands() -> Samples:
    counted = dict(Command.objects.filter(open=True).values_list("kind").annotate(Count("pk")))
    return [({"kind": kind.value}, counted.get(kind.value, 0)) for kind in CommandKind]


def _blocks() -> int:
    return Block.objects.filter(lifted_at__isnull=True).count()


def _queued(now: datetime) -> float:
    oldest = (
        Run.objects.filter(status=Status.QUEUED).order_by("created_at").values_list("created_at", flat=True).first()
    )
    return max(0.0, (now - oldest).total_seconds()) if oldest else 0.0


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
