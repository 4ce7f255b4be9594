"""The page of schedules: when which agent starts, what would hold it, and what became of the last times."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import rooms
from control.fleet import schedules, scheduling
from control.fleet.models import Agent, Policy
from control.fleet.models_schedules import Schedule
from control.fleet.schedules import BadSchedule
from control.runs.clock import database_now
from control.runs.models import Run
from control.runs.refusals import StartRefused

_TEXTS = ("agent", "task", "cron", "zone", "policy", "workspace", "missed", "overlap")
_LIMITS = ("max_turns", "max_steps", "max_tokens", "max_cost", "max_seconds")
TIMES = 5
DOTS = 14


@login_required
def page(request: HttpRequest) -> HttpResponse:
    """Every schedule with its fuses, its next times and its last ones."""
    rows = list(Schedule.objects.order_by("-enabled", "next_at", "name"))
    context = {"section": "agents", "items": [_item(row) for row in rows]}
    return render(request, "schedules/list.html", {**context, "may_write": rooms.may(request, "write_schedule")})


def _item(row: Schedule) -> dict[str, Any]:
    fuses, problem = [], ""
    try:
        fuses = scheduling.fuse_words(scheduling.fuses(row))
    except StartRefused as error:
        problem = error.message
    times = list(row.times.order_by("-due_at")[:DOTS])
    runs = {run.pk: run for run in Run.objects.filter(pk__in=[one.run_id for one in times]).defer("spec", "final")}
    return {
        "row": row,
        "words": schedules.in_words(row.cron),
        "coming": schedules.coming(row.cron, row.zone, database_now(), TIMES) if row.enabled else [],
        "fuses": fuses,
        "problem": problem,
        "times": [(one, runs.get(one.run_id or "")) for one in times],
    }


@login_required
def edit(request: HttpRequest, name: str = "") -> HttpResponse:
    """A schedule's form; without a name a new one."""
    if answer := rooms.refused(request, "write_schedule", f"schedule:{name or 'new'}", "/schedules/"):
        return answer
    row = Schedule.objects.filter(name=name).first() if name else None
    if name and row is None:
        raise Http404("There is no schedule of this name.")
    typed, problem = _begun(row), ""
    if request.method == "POST":
        typed = {key: request.POST.get(key, "").replace("\x00", "").strip() for key in typed}
        problem = _saved(request, name or typed["name"], typed)
        if not problem:
            return rooms.told(request, "Saved.", "schedules")
    context = {
        "section": "agents",
        "row": row,
        "typed": typed,
        "problem": problem,
        "agents": Agent.objects.filter(current=True).order_by("name").values_list("name", flat=True),
        "policies": Policy.objects.filter(current=True).order_by("name").values_list("name", flat=True),
        "limits": [(field, typed[field]) for field in _LIMITS],
        "missed": Schedule.Missed.values,
        "overlap": Schedule.Overlap.values,
    }
    return render(request, "schedules/edit.html", context, status=400 if problem else 200)


def _begun(row: Schedule | None) -> dict[str, str]:
    if row is None:
        empty = dict.fromkeys((*_TEXTS, *_LIMITS, "dry_run"), "")
        return empty | {"name": "", "agent": "default", "zone": "UTC", "stop_after_trips": "3"}
    found = {field: str(getattr(row, field)) for field in _TEXTS}
    found |= {field: str(row.limits.get(field) or "") for field in _LIMITS}
    return found | {"name": row.name, "stop_after_trips": str(row.stop_after_trips), "dry_run": "1" * row.dry_run}


def _saved(request: HttpRequest, name: str, typed: dict[str, str]) -> str:
    """What is wrong with it; "" once it is saved."""
    trips = typed["stop_after_trips"] or "0"
    if not (trips.isascii() and trips.isdigit() and len(trips) < 4):
        return "It stops itself after a number of trips."
    given: dict[str, Any] = {field: typed[field] for field in _TEXTS}
    given |= {field: typed[field] or word for field, word in (("zone", "UTC"), ("missed", "once"), ("overlap", "skip"))}
    given |= {"limits": {field: typed[field] for field in _LIMITS if typed[field]}, "stop_after_trips": int(trips)}
    actor = of_request(request)
    assert actor is not None
    target = f"schedule:{name[:80]}"
    try:
        with transaction.atomic():
            row, before = scheduling.save(name, {**given, "dry_run": bool(typed["dry_run"])}, actor.name)
            audit.record(request, "write_schedule", target, before=_plain(before), after=_plain(scheduling.told(row)))
    except BadSchedule as error:
        audit.record(request, "write_schedule", target, result="bad_schedule")
        return error.message
    except StartRefused as error:
        audit.record(request, "write_schedule", target, result=error.code)
        return error.message
    return ""


def _plain(told: Any) -> Any:
    return told and {name: str(value) if name.endswith("_at") else value for name, value in told.items()}


@login_required
@require_POST
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Stop it, let it go on, start a run of it now, or delete it."""
    what = request.POST.get("do", "")
    verb = "start" if what == "run" else "write_schedule"
    if answer := rooms.refused(request, verb, f"schedule:{name}", "/schedules/"):
        return answer
    row = Schedule.objects.filter(name=name).first()
    if row is None:
        raise Http404("There is no schedule of this name.")
    actor = of_request(request)
    assert actor is not None
    target = f"schedule:{row.name}"
    if what == "run":
        try:
            made = scheduling.start_now(row, actor.name)
        except StartRefused as error:
            audit.record(request, "start", target, result=error.code)
            return rooms.told(request, error.message, "schedules", good=False)
        audit.record(request, "start", target, after={"run": made.run_id})
        return redirect("run", run_id=made.run_id)
    if what == "delete":
        audit.record(request, "delete_schedule", target, before=_plain(scheduling.told(row)))
        row.delete()
        return rooms.told(request, "Deleted. Its runs stay.", "schedules")
    changed = scheduling.switch(row, on=what == "on", by=actor.name)
    result = "ok" if changed else "unchanged"
    audit.record(request, "switch_schedule", target, after={"enabled": what == "on"}, result=result)
    return rooms.told(request, "It goes on." if what == "on" else "Stopped.", "schedules")
