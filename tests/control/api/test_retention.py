"""What `prune` takes, what it leaves, and that the audit trail outlives everything."""

import json
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from agents.kinds import RunCompleted
from control.accounts.models import AuditEntry
from control.api import retention
from control.runs import counters
from control.runs.models import Command, Cursor, Event, Receipt, Run
from tests.control.api.callers import Caller
from tests.control.api.test_cli import cli
from tests.control.records import make_run, write

GONE = dict.fromkeys(("runs", "events", "postmortems", "incidents", "deliveries", "backtests"), 0)
pytestmark = pytest.mark.django_db(transaction=True)


def an_old_run(operator: Caller, days: int) -> Run:
    """One that a person stopped, ended this many days ago; so did what was written into the audit trail about it."""
    run = make_run()
    assert operator.post(f"/api/runs/{run.pk}/steer", {"note": "look left"}).status == 202
    write(run, RunCompleted(final="done"))
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(days=days))
    return run


def test_the_audit_trail_of_dropped_runs_stays_whole(operator: Caller) -> None:
    run = an_old_run(operator, 400)
    trail = list(AuditEntry.objects.order_by("pk").values())
    assert any(entry["target"].endswith(run.pk) for entry in trail)
    date = (timezone.now() - timedelta(days=30)).date().isoformat()
    cli("prune", "--before", date)
    assert not Run.objects.filter(pk=run.pk).exists()
    after = list(AuditEntry.objects.order_by("pk").values())
    assert after[: len(trail)] == trail
    (pruned,) = after[len(trail) :]
    assert (pruned["action"], pruned["after"]) == ("prune", GONE | {"runs": 1, "events": 2})


def test_a_dry_run_tells_what_would_go_and_takes_nothing(operator: Caller) -> None:
    an_old_run(operator, 40)
    an_old_run(operator, 1)
    before = (Run.objects.count(), Event.objects.count(), AuditEntry.objects.count())
    date = (timezone.now() - timedelta(days=30)).date().isoformat()
    told = json.loads(cli("prune", "--before", date, "--dry-run"))
    assert (told["dry_run"], told["runs"], told["events"]) == (True, 1, 2)
    assert (Run.objects.count(), Event.objects.count(), AuditEntry.objects.count()) == before
    done = json.loads(cli("prune", "--before", date))
    assert (done["runs"], done["events"]) == (told["runs"], told["events"])


def test_nothing_that_belongs_to_a_dropped_run_is_left(operator: Caller) -> None:
    run = an_old_run(operator, 40)
    counters.count()
    assert Cursor.objects.filter(run_id=run.pk).exists() and Receipt.objects.filter(run_id=run.pk).exists()
    retention.drop(timezone.now() - timedelta(days=30))
    for model in (Event, Cursor, Receipt, Command):
        assert not model.objects.filter(run_id=run.pk).exists(), model


def test_no_way_of_django_or_of_the_database_takes_an_audit_row(operator: Caller) -> None:
    an_old_run(operator, 40)
    entry = AuditEntry.objects.order_by("pk")[0]
    with pytest.raises((TypeError, DatabaseError)), transaction.atomic():
        AuditEntry.objects.filter(at__lt=timezone.now()).delete()
    with pytest.raises((TypeError, DatabaseError)), transaction.atomic():
        entry.delete()
    assert AuditEntry.objects.filter(pk=entry.pk).exists()
