"""An incident as transports tell it, with links that lead into the console; and the made-up one of a test."""

from datetime import datetime, timedelta

from django.conf import settings

from agents.policy.redaction import make_safe
from agents.spec import FINAL
from control.incidents.models import AlertRoute, Delivery, Incident
from control.incidents.rules import rule_of, runbook
from control.incidents.transports.ports import Message, Notice
from control.plain import visible
from control.runs.models import Run

# Opens the dialog of the run's page; the button in it stops the run.
STOP = "#interrupt-dialog"
_ENDED = frozenset(status.value for status in FINAL)


def notice_of(incident: Incident) -> Notice:
    rule = rule_of(incident.rule)
    run_url = f"{settings.CONSOLE_URL}/runs/{incident.run_id}/" if incident.run_id else None
    return Notice(
        key=incident.key,
        id=incident.id,
        rule=incident.rule,
        word=rule.word,
        severity=incident.severity,
        state=incident.state,
        title=_safe(named(incident)),
        summary=_safe(incident.summary),
        next_step=rule.next_step,
        facts=tuple((_safe(str(name)), _safe(str(value))) for name, value in incident.facts),
        run=incident.run_id,
        agent=incident.agent,
        project=incident.project,
        happened_at=incident.happened_at,
        opened_at=incident.opened_at,
        resolved_at=incident.resolved_at,
        times=incident.times,
        url=f"{settings.CONSOLE_URL}/incidents/{incident.id}/",
        run_url=run_url,
        stop_url=f"{run_url}{STOP}" if run_url and is_under_way(incident) else None,
        runbook_url=runbook(incident.rule),
        labels={_safe(str(name)): _safe(str(value)) for name, value in incident.labels.items()},
        by=incident.resolved_by or incident.acknowledged_by,
    )


def _safe(text: str) -> str:
    """Once more on the way out of the house, as with postmortems: what is sent cannot be taken back."""
    return visible(make_safe(text).text)


def named(incident: Incident) -> str:
    """The title with the agent before it, as somebody reads it who sees nothing else."""
    return f"{incident.agent}: {incident.title}" if incident.agent else incident.title


def is_under_way(incident: Incident) -> bool:
    """Whether its run can still be stopped."""
    return bool(incident.run_id) and Run.objects.filter(pk=incident.run_id).exclude(status__in=_ENDED).exists()


def message_of(deliveries: list[Delivery], message: str, now: datetime) -> Message:
    """Deliveries of one route and one action, as they go out at once."""
    first = deliveries[0]
    found = [delivery.incident for delivery in deliveries if delivery.incident is not None]
    notices = tuple(notice_of(incident) for incident in found) or (example(first.key, now),)
    return Message(
        id=message,
        created=first.created_at,
        action=first.action,
        route=first.route.name,
        console_url=settings.CONSOLE_URL,
        notices=notices,
        reminder=is_reminder(first),
    )


def is_reminder(delivery: Delivery) -> bool:
    """A later notice of the same round: it says that nothing has changed."""
    incident = delivery.incident
    return delivery.action == Delivery.Action.TRIGGER and incident is not None and delivery.number > incident.round


def preview_of(route: AlertRoute, now: datetime) -> Message:
    """What a first notice on this route would look like."""
    return Message(
        id="01890000-0000-7000-8000-000000000000",
        created=now,
        action=Delivery.Action.TRIGGER,
        route=route.name,
        console_url=settings.CONSOLE_URL,
        notices=(example("run:01890000-0000-7000-8000-000000000001:tripped", now),),
    )


def example(key: str, now: datetime) -> Notice:
    """An incident that never was."""
    run = "01890000-0000-7000-8000-000000000001"
    return Notice(
        key=key,
        id="01890000-0000-7000-8000-000000000002",
        rule="tripped",
        word="Tripped",
        severity="error",
        state="open",
        title="importer: Tripped at step 12: rule repeats (this is a test)",
        summary="This alert is a test. Nothing has happened, and nobody needs to do anything.",
        next_step=rule_of("tripped").next_step,
        facts=(("stopped by", "rule repeats"), ("step", "12"), ("times", "8")),
        run=run,
        agent="importer",
        project="default",
        happened_at=now - timedelta(seconds=3),
        opened_at=now,
        resolved_at=None,
        times=1,
        url=f"{settings.CONSOLE_URL}/incidents/",
        run_url=f"{settings.CONSOLE_URL}/runs/{run}/",
        stop_url=None,
        runbook_url=runbook("tripped"),
    )
