"""Routes of schedules: which agent starts on which task when, with its fuses in view."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import ApiError, not_found
from control.api.outputs import ChangedOut, Out
from control.api.schemas import Body, Clean, LimitsIn, Name, Reason
from control.fleet import schedules, scheduling
from control.fleet.models_schedules import Schedule
from control.fleet.schedules import BadSchedule
from control.runs import specs
from control.runs.clock import database_now
from control.runs.refusals import StartRefused

router = Router(tags=["schedules"])
TIMES = 20
COMING = 3


class ScheduleIn(Body):
    """`cron`: minute hour day month weekday, read in `zone`. `missed`: what becomes of times that no desk saw.
    `overlap`: what if the run before still goes on. `stop_after_trips`: 0 never."""

    agent: Name = "default"
    task: Annotated[Clean, Field(min_length=1, max_length=100_000)]
    cron: Annotated[Clean, Field(max_length=100)]
    zone: Annotated[Clean, Field(max_length=60)] = "UTC"
    policy: Annotated[Clean, Field(max_length=100)] = ""
    limits: LimitsIn = LimitsIn()
    labels: dict[Clean, Clean] = {}
    project: Annotated[Clean, Field(max_length=100)] = ""
    workspace: Annotated[Clean, Field(max_length=1000)] = ""
    dry_run: bool = False
    missed: Literal["once", "skip", "all"] = "once"
    overlap: Literal["skip", "allow", "interrupt"] = "skip"
    stop_after_trips: Annotated[int, Field(ge=0, le=50)] = 3


class SwitchIn(Body):
    enabled: bool
    reason: Reason | None = None


class ScheduleOut(Out):
    """`fuses` are those that would hold a run now, `{name: {value, source}}`; `coming` the next times; `times` the last
    ones with what became of them."""

    name: str
    agent: str
    cron: str
    zone: str
    enabled: bool
    next_at: str | None


class SchedulesOut(Out):
    schedules: list[ScheduleOut]


class ScheduledOut(Out):
    run: str
    url: str


def row_of(row: Schedule, *, times: bool = False) -> dict[str, Any]:
    found = scheduling.told(row) | {"words": schedules.in_words(row.cron), "fuses": None, "problem": None}
    try:
        found["fuses"] = specs.limits_to_json(scheduling.fuses(row))
    except StartRefused as error:
        found["problem"] = error.message
    found["coming"] = schedules.coming(row.cron, row.zone, database_now(), COMING) if row.enabled else []
    if times:
        names = ("due_at", "at", "outcome", "run_id", "why", "by")
        found["times"] = list(row.times.order_by("-due_at").values(*names)[:TIMES])
    return found


def saved(name: str, given: Mapping[str, Any], by: str) -> Done:
    try:
        row, before = scheduling.save(name, given, by)
    except BadSchedule as error:
        raise ApiError("bad_schedule", error.message, status=422, detail={"field": error.field}) from error
    after = scheduling.told(row)
    same = before is not None and all(before[field] == after[field] for field in scheduling.FIELDS)
    body = row_of(row) | {"changed": not same}
    result = "unchanged" if same else "ok"
    return Done(body=body, status=200 if before else 201, result=result, before=before, after=after)


def given_of(payload: ScheduleIn) -> dict[str, Any]:
    return payload.dict(exclude={"limits"}) | {"limits": payload.limits.given()}


def find(name: str) -> Schedule:
    row = Schedule.objects.filter(name=name).first() if "\x00" not in name else None
    if row is None:
        raise not_found("schedule", name)
    return row


@router.get("/schedules", auth=Needs("view"), response=SchedulesOut, summary="The schedules")
def listed(request: HttpRequest) -> HttpResponse:
    return answer({"schedules": [row_of(row) for row in Schedule.objects.order_by("name")]})


@router.get("/schedules/{name}", auth=Needs("view"), response=ScheduleOut, summary="One schedule with its last times")
def one(request: HttpRequest, name: str) -> HttpResponse:
    return answer(row_of(find(name), times=True))


@router.put(
    "/schedules/{name}", auth=Needs("write_schedule"), response={200: ScheduleOut, 201: ScheduleOut}, summary="Save one"
)
def put(request: HttpRequest, name: str, payload: ScheduleIn) -> HttpResponse:
    """Agent, policy and limits are checked as a start would check them."""
    act = Act(action="write_schedule", target=f"schedule:{name[:80]}")
    return perform(request, act, lambda: saved(name, given_of(payload), actor_of(request).name))


@router.delete("/schedules/{name}", auth=Needs("write_schedule"), response=ChangedOut, summary="Delete one")
def delete(request: HttpRequest, name: str) -> HttpResponse:
    """Its runs stay."""
    act = Act(action="delete_schedule", target=f"schedule:{name[:80]}")
    return perform(request, act, lambda: deleted(name))


def deleted(name: str) -> Done:
    row = find(name)
    before = scheduling.told(row)
    row.delete()
    return Done(body={"changed": True, "reason": None}, status=200, before=before)


@router.post("/schedules/{name}/switch", auth=Needs("write_schedule"), response=ChangedOut, summary="Stop it, or go on")
def switch(request: HttpRequest, name: str, payload: SwitchIn) -> HttpResponse:
    """After it has stopped itself: trips from before do not stop it again."""
    act = Act(action="switch_schedule", target=f"schedule:{name[:80]}", reason=payload.reason)
    return perform(
        request, act, lambda: switched(name, on=payload.enabled, by=actor_of(request).name, why=payload.reason or "")
    )


def switched(name: str, *, on: bool, by: str, why: str) -> Done:
    changed = scheduling.switch(find(name), on=on, by=by, why=why)
    word = None if changed else "already_on" if on else "already_off"
    body = {"changed": changed, "reason": word}
    return Done(body=body, status=200, result=word or "ok", after={"enabled": on})


@router.post("/schedules/{name}/run", auth=Needs("start"), response={201: ScheduledOut}, summary="A run of it now")
def run_now(request: HttpRequest, name: str) -> HttpResponse:
    act = Act(action="start", target=f"schedule:{name[:80]}")
    return perform(request, act, lambda: started(name, actor_of(request).name))


def started(name: str, by: str) -> Done:
    made = scheduling.start_now(find(name), by)
    body = {"run": made.run_id, "url": f"/runs/{made.run_id}/"}
    return Done(body=body, status=201, after={"run": made.run_id, "schedule": name})
