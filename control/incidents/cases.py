"""An incident's life: opened by a rule, acknowledged, assigned, put off and resolved by people, or resolved by itself.

Every step is a conditional update of the row, a line in the incident's own history and, where somebody must be told,
notices on the routes: all in the caller's transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from control.incidents import notices
from control.incidents.models import Delivery, Incident, IncidentNote, Severity, State
from control.incidents.rules import rule_of

# A lasting condition must have been over for so long before its incident resolves by itself.
STEADY = timedelta(minutes=2)
# What comes back within this time is the same incident; so often, and it flaps: then it is told once more and stays
# open until it has been quiet for longer.
RETURN_WITHIN = timedelta(minutes=30)
FLAPS = 3
STEADY_AFTER_FLAPPING = timedelta(minutes=15)
# A rule that speaks of an open incident again and again gets a line this often.
AGAIN_EVERY = timedelta(minutes=1)
SNOOZES = {"30m": timedelta(minutes=30), "2h": timedelta(hours=2), "8h": timedelta(hours=8), "1d": timedelta(days=1)}
MOST_TEXT = 5_000
# What was known of the end of one that begins again, and of who saw to it.
_BEGUN_AGAIN: dict[str, Any] = {
    "cleared_at": None,
    "resolved_at": None,
    "resolved_by": "",
    "resolution": "",
    "acknowledged_at": None,
    "acknowledged_by": "",
}


class CannotBe(Exception):
    """An act that does not fit the state of the incident. `code` is stable, the text says what to do next."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a rule has to say of one thing; `key` tells it from others."""

    key: str
    rule: str
    title: str
    at: datetime
    summary: str = ""
    facts: Sequence[tuple[str, str]] = ()
    evidence: Sequence[int] = ()
    run: str | None = None
    root: str | None = None
    agent: str = ""
    project: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    severity: Severity | None = None


def note(incident: Incident, kind: str, at: datetime, *, by: str = "", text: str = "") -> None:
    """A line in the incident's own history."""
    IncidentNote.objects.create(incident=incident, at=at, kind=kind, by=by[:150], text=text[:MOST_TEXT])


# --- what rules do ------------------------------------------------------------------------------------------


def open_(case: Case, now: datetime) -> Incident:
    """The one unresolved incident of a key: opened, or told again, or come back. Two desks may ask at once."""
    for _ in range(3):
        known = Incident.objects.filter(key=case.key).exclude(state=State.RESOLVED).first()
        if known is not None:
            return _again(known, case, now)
        last = Incident.objects.filter(key=case.key, resolved_at__gte=now - RETURN_WITHIN).order_by("-id").first()
        try:
            with transaction.atomic():
                if last is not None and rule_of(case.rule).lasting:
                    return _return(last, case, now)
                return _open(case, now)
        except IntegrityError:
            continue
    raise RuntimeError(f"the incident {case.key} cannot be opened")


def _open(case: Case, now: datetime) -> Incident:
    incident = Incident.objects.create(
        key=case.key[:200],
        rule=case.rule,
        severity=case.severity or rule_of(case.rule).severity,
        title=case.title[:300],
        summary=case.summary,
        facts=[list(pair) for pair in case.facts],
        evidence=list(case.evidence),
        run_id=case.run,
        root=case.root,
        agent=case.agent,
        project=case.project,
        labels=dict(case.labels),
        happened_at=min(case.at, now),
        opened_at=now,
        last_at=now,
        remind_at=now,
    )
    note(incident, "opened", now, text=incident.title)
    notices.plan(incident, Delivery.Action.TRIGGER, now)
    return incident


def _again(incident: Incident, case: Case, now: datetime) -> Incident:
    changes: dict[str, Any] = {"times": incident.times + 1, "cleared_at": None, "title": case.title[:300]}
    changes |= {"summary": case.summary, "facts": [list(pair) for pair in case.facts], "last_at": now}
    changes |= {"evidence": list(case.evidence)}
    if Incident.objects.filter(pk=incident.pk, times=incident.times).update(**changes):
        said_lately = incident.notes.filter(kind__in=("again", "opened"), at__gt=now - AGAIN_EVERY).exists()
        if not said_lately:
            note(incident, "again", now, text=case.title)
    incident.refresh_from_db()
    return incident


def _return(last: Incident, case: Case, now: datetime) -> Incident:
    """It was resolved a short while ago: the same incident, open again."""
    returns = last.returns + 1
    flaps = returns >= FLAPS
    changed = Incident.objects.filter(pk=last.pk, state=State.RESOLVED).update(
        state=State.OPEN,
        returns=returns,
        round=notices.next_round(last),
        times=last.times + 1,
        flapping=flaps,
        title=(f"{case.title[:280]} (comes and goes)" if flaps else case.title)[:300],
        summary=case.summary,
        facts=[list(pair) for pair in case.facts],
        evidence=list(case.evidence),
        last_at=now,
        remind_at=now,
        **_BEGUN_AGAIN,
    )
    last.refresh_from_db()
    if changed:
        note(last, "flapping" if flaps else "returned", now, text=case.title)
        notices.plan(last, Delivery.Action.TRIGGER, now)
    return last


def clear(key: str, at: datetime, now: datetime, *, final: bool = False) -> None:
    """The condition has passed. With the end of the run the incident resolves; else once it has stayed so."""
    incident = Incident.objects.filter(key=key).exclude(state=State.RESOLVED).first()
    if incident is None or not rule_of(incident.rule).lasting:
        return
    if final:
        resolve(incident, now, text="The run has ended.")
    elif Incident.objects.filter(pk=incident.pk, cleared_at=None).update(cleared_at=now):
        note(incident, "cleared", now, text="The condition has passed.")


def settle(now: datetime) -> int:
    """Resolve what has been over for long enough; how many."""
    cleared = Incident.objects.exclude(state=State.RESOLVED).filter(cleared_at__lte=now - STEADY)[:200]
    done = 0
    for incident in cleared:
        steady = STEADY_AFTER_FLAPPING if incident.flapping else STEADY
        if incident.cleared_at is not None and incident.cleared_at <= now - steady:
            with transaction.atomic():
                done += resolve(incident, now, text="The condition has stayed away.")
    return done


# --- what people do -----------------------------------------------------------------------------------------


def acknowledge(incident: Incident, by: str, now: datetime) -> bool:
    """Somebody sees to it: no reminder and no second channel any more. False if somebody did already."""
    _still_open(incident)
    changed = Incident.objects.filter(pk=incident.pk, state=State.OPEN).update(
        state=State.ACKNOWLEDGED, acknowledged_at=now, acknowledged_by=by[:150]
    )
    if changed:
        Incident.objects.filter(pk=incident.pk, assignee="").update(assignee=by[:150])
        incident.refresh_from_db()
        note(incident, "acknowledged", now, by=by)
        notices.plan(incident, Delivery.Action.ACKNOWLEDGE, now)
    return bool(changed)


def assign(incident: Incident, to: str, by: str, now: datetime) -> bool:
    """Whose it is; "" for nobody's."""
    _still_open(incident)
    changed = Incident.objects.filter(pk=incident.pk).exclude(assignee=to).update(assignee=to[:150])
    if changed:
        incident.refresh_from_db()
        note(incident, "assigned", now, by=by, text=to or "nobody")
    return bool(changed)


def comment(incident: Incident, text: str, by: str, now: datetime) -> None:
    """Also after it is resolved."""
    if not text.strip():
        raise CannotBe("empty_comment", "A comment needs some text.")
    if len(text) > MOST_TEXT:
        raise CannotBe("comment_too_long", f"A comment may have {MOST_TEXT:,} characters.")
    note(incident, "comment", now, by=by, text=text.strip())


def snooze(incident: Incident, term: str, by: str, now: datetime) -> datetime:
    """No notice about it for a while; its rule is looked at as ever, and that it is over is told."""
    _still_open(incident)
    if term not in SNOOZES:
        raise CannotBe("bad_term", f"Choose one of {', '.join(SNOOZES)}.")
    until = now + SNOOZES[term]
    Incident.objects.filter(pk=incident.pk).update(snoozed_until=until, remind_at=until)
    incident.refresh_from_db()
    note(incident, "snoozed", now, by=by, text=term)
    return until


def wake(incident: Incident, by: str, now: datetime) -> bool:
    """End a snooze early."""
    changed = Incident.objects.filter(pk=incident.pk, snoozed_until__gt=now).update(snoozed_until=None, remind_at=now)
    if changed:
        incident.refresh_from_db()
        note(incident, "woken", now, by=by)
    return bool(changed)


def resolve(incident: Incident, now: datetime, *, by: str = "", text: str = "") -> bool:
    """It is over: every route that was told is told so. `by` "": the desk itself. False if it was over already."""
    changed = (
        Incident.objects.filter(pk=incident.pk)
        .exclude(state=State.RESOLVED)
        .update(
            state=State.RESOLVED,
            resolved_at=now,
            resolved_by=by[:150],
            resolution=text[:MOST_TEXT],
            snoozed_until=None,
            remind_at=None,
        )
    )
    if changed:
        incident.refresh_from_db()
        note(incident, "resolved", now, by=by, text=text)
        notices.plan(incident, Delivery.Action.RESOLVE, now)
    return bool(changed)


def reopen(incident: Incident, by: str, now: datetime) -> bool:
    """Resolved too early. Raises CannotBe while another incident of its key is open."""
    try:
        with transaction.atomic():
            changed = Incident.objects.filter(pk=incident.pk, state=State.RESOLVED).update(
                state=State.OPEN,
                round=notices.next_round(incident),
                remind_at=now,
                **_BEGUN_AGAIN,
            )
    except IntegrityError:
        raise CannotBe("opened_again", "This has been opened again as another incident. Go on there.") from None
    if changed:
        incident.refresh_from_db()
        note(incident, "reopened", now, by=by)
        notices.plan(incident, Delivery.Action.TRIGGER, now)
    return bool(changed)


def _still_open(incident: Incident) -> None:
    if incident.state == State.RESOLVED:
        raise CannotBe("already_resolved", "This incident is resolved. Reopen it first.")
