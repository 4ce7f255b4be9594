"""Starting the runs of schedules, stopping schedules whose runs trip, and what people do with them."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.commands import CommandKind, Scope
from agents.spec import FINAL, Limits, Status
from control.fleet import schedules
from control.fleet.models_schedules import Schedule, ScheduledRun
from control.fleet.policies import BAD_NAME, NAME
from control.fleet.schedules import BadSchedule
from control.runs import inbox, starts
from control.runs.clock import database_now
from control.runs.models import Run
from control.runs.outages import AWAY
from control.runs.refusals import RunFinished, StartRefused

logger = logging.getLogger(__name__)
_FINAL = [status.value for status in FINAL]
LABEL = "schedule"
MOST_TRIPS = 50
FIELDS = (
    "agent", "task", "cron", "zone", "policy", "limits", "labels", "project", "workspace", "dry_run", "missed",
    "overlap", "stop_after_trips",
)  # fmt: skip


def turn() -> int:
    """Look at every schedule once; how many runs were started."""
    started, now = 0, database_now()
    for one in Schedule.objects.filter(enabled=True).order_by("next_at"):
        try:
            if _stops_itself(one, now):
                continue
            if one.next_at is not None and one.next_at <= now:
                started += _take_up(one, now)
        except AWAY:
            raise
        except Exception:
            # The others must not wait for it.
            logger.exception("schedule %s could not be taken up; trying again", one.name)
    return started


def _take_up(one: Schedule, now: datetime) -> int:
    """Take up what is due, in one transaction with the claim on it: nobody starts it twice, and nothing is lost."""
    assert one.next_at is not None
    found = schedules.due(one.cron, one.zone, one.next_at, now, one.missed)
    following = schedules.next_after(one.cron, one.zone, now)
    with transaction.atomic():
        mine = Schedule.objects.filter(pk=one.pk, enabled=True, next_at=one.next_at)
        if not mine.update(next_at=following):
            return 0
        if found.last_missed is not None:
            why = f"{found.missed} time{'' if found.missed == 1 else 's'} passed over: no desk was there"
            _write(one, found.last_missed, now, ScheduledRun.Outcome.MISSED, why=why)
        return sum(_start(one, at, now) for at in found.starts)


def _start(one: Schedule, due_at: datetime, now: datetime, by: str = "") -> bool:
    going = going_on(one)
    if going and one.overlap == Schedule.Overlap.SKIP and not by:
        _write(one, due_at, now, ScheduledRun.Outcome.OVERLAP, why=f"run {going[0]} still goes on")
        return False
    if going and one.overlap == Schedule.Overlap.INTERRUPT:
        _interrupt(one, going)
    try:
        with transaction.atomic():
            run = starts.start(request_of(one), by=by or f"schedule:{one.name}"[:150])
    except StartRefused as error:
        _write(one, due_at, now, ScheduledRun.Outcome.REFUSED, why=f"{error.code}: {error.message}"[:300], by=by)
        return False
    _write(one, due_at, now, ScheduledRun.Outcome.STARTED, run=run.pk, by=by)
    return True


def _write(
    one: Schedule, due_at: datetime, at: datetime, outcome: str, *, run: str | None = None, why: str = "", by: str = ""
) -> None:
    ScheduledRun.objects.create(schedule=one, due_at=due_at, at=at, outcome=outcome, run_id=run, why=why, by=by)


def _interrupt(one: Schedule, runs: Sequence[str]) -> None:
    for run in runs:
        try:
            reason = f"the next run of schedule {one.name} takes its place"
            inbox.issue(
                run_id=run, kind=CommandKind.INTERRUPT, by=f"schedule:{one.name}"[:150], scope=Scope.SUBTREE,
                reason=reason, args={},
            )  # fmt: skip
        except RunFinished:
            pass  # it has ended meanwhile


def request_of(one: Schedule) -> starts.StartRequest:
    return starts.StartRequest(
        agent=one.agent,
        task=one.task,
        policy=one.policy or None,
        limits=one.limits,
        workspace=one.workspace or None,
        dry_run=one.dry_run,
        labels={**one.labels, LABEL: one.name},
        project=one.project or None,
    )


def going_on(one: Schedule) -> list[str]:
    """Its runs that have not ended."""
    own = one.times.exclude(run_id=None).order_by("-due_at").values_list("run_id", flat=True)[:50]
    return list(Run.objects.filter(pk__in=list(own)).exclude(status__in=_FINAL).values_list("pk", flat=True))


def _stops_itself(one: Schedule, now: datetime) -> bool:
    """Whether its last runs, as many as it says, have all tripped; then it is off until somebody lets it go on."""
    if not one.stop_after_trips:
        return False
    own = list(one.times.exclude(run_id=None).order_by("-due_at").values_list("run_id", flat=True)[:50])
    ended = Run.objects.filter(pk__in=own, status__in=_FINAL)
    if one.trips_since is not None:
        ended = ended.filter(created_at__gte=one.trips_since)
    last = list(ended.order_by("-created_at").values_list("status", "exit_reason")[: one.stop_after_trips])
    if len(last) < one.stop_after_trips or any(status != Status.TRIPPED.value for status, _ in last):
        return False
    reasons = ", ".join(sorted({str(reason) for _, reason in last}))
    what = "Its last run tripped" if len(last) == 1 else f"Its last {len(last)} runs tripped"
    on = Schedule.objects.filter(pk=one.pk, enabled=True)
    on.update(enabled=False, next_at=None, stopped_at=now, stopped_by="", stopped_why=f"{what} ({reasons})"[:300])
    return True


# --- what people do ------------------------------------------------------------------------------------------------


def save(name: str, given: Mapping[str, Any], by: str) -> tuple[Schedule, dict[str, Any] | None]:
    """Make or change one; the row and what it was before. Raises BadSchedule and StartRefused."""
    if not NAME.fullmatch(name):
        raise BadSchedule("name", BAD_NAME)
    with transaction.atomic():
        old = Schedule.objects.select_for_update().filter(name=name).first()
        before = told(old) if old else None
        row = old or Schedule(name=name)
        for field in FIELDS:
            if field in given:
                setattr(row, field, given[field])
        _check(row)
        schedules.check(row.cron, row.zone)
        fuses(row)  # agent, policy and limits are checked as a start would
        now = database_now()
        row.changed_at, row.changed_by = now, by
        if row.enabled:
            row.next_at = schedules.next_after(row.cron, row.zone, now)
        row.save()
    return row, before


def _check(row: Schedule) -> None:
    """What no start would find fault with, and no table could hold. Raises BadSchedule."""
    if not row.task.strip():
        raise BadSchedule("task", "Say in a sentence or more what is to be done.")
    for field, words in (("missed", Schedule.Missed.values), ("overlap", Schedule.Overlap.values)):
        if getattr(row, field) not in words:
            raise BadSchedule(field, f"{field} is one of {', '.join(words)}.")
    if not 0 <= row.stop_after_trips <= MOST_TRIPS:
        raise BadSchedule("stop_after_trips", f"It stops itself after 1 to {MOST_TRIPS} trips, or 0: never.")
    for field, most in (("cron", 100), ("zone", 60), ("project", 100), ("workspace", 1000)):
        if len(getattr(row, field)) > most:
            raise BadSchedule(field, f"{field} has at most {most} characters.")


def switch(row: Schedule, *, on: bool, by: str, why: str = "") -> bool:
    """Let it go on, or stop it; whether that changed anything. Trips from before do not stop it again."""
    now = database_now()
    same = Schedule.objects.filter(pk=row.pk, enabled=not on)
    if on:
        following = schedules.next_after(row.cron, row.zone, now)
        return bool(
            same.update(
                enabled=True, next_at=following, trips_since=now, stopped_at=None, stopped_by="", stopped_why=""
            )
        )
    return bool(same.update(enabled=False, next_at=None, stopped_at=now, stopped_by=by, stopped_why=why[:300]))


def start_now(row: Schedule, by: str) -> ScheduledRun:
    """A run out of turn, also while the last one goes on. Raises StartRefused."""
    now = database_now()
    with transaction.atomic():
        run = starts.start(request_of(row), by=by)
        return ScheduledRun.objects.create(
            schedule=row, due_at=now, at=now, outcome=ScheduledRun.Outcome.STARTED, run_id=run.pk, by=by
        )


def fuses(row: Schedule) -> Limits:
    """What would hold a run of it now: of environment, agent, policy and schedule the tightest. Raises StartRefused."""
    agent = starts.known_agent(row.agent)
    _, _, body = starts.known_policy(row.policy or agent.policy)
    return starts.limits_of(agent, body, row.limits)


def fuse_words(limits: Limits) -> list[str]:
    """`12 steps`, for lists."""
    words = {"max_turns": "turns", "max_steps": "steps", "max_tokens": "tokens", "max_cost": "USD", "max_seconds": "s"}
    found = ((word, getattr(limits, name)) for name, word in words.items())
    return [f"{limit.value.normalize():,f} {word}" for word, limit in found if limit is not None]


def told(row: Schedule) -> dict[str, Any]:
    """As the API tells it."""
    names = ("name", *FIELDS, "enabled", "next_at", "stopped_at", "stopped_why", "changed_at", "changed_by")
    return {name: getattr(row, name) for name in names}
