"""What `prune` takes of the desk's rows: what is over and old, with all that hangs on it; what is open stays."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.kinds import RunTripped
from control.incidents import cases
from control.incidents.cases import Case
from control.incidents.models import (
    ActionItem,
    Backtest,
    BacktestPiece,
    BacktestResult,
    Delivery,
    Incident,
    IncidentNote,
    Postmortem,
    PostmortemRevision,
    ShareLink,
)
from control.incidents.postmortem import editing, shares
from control.runs.models import Run
from tests.control.api.callers import Caller
from tests.control.api.test_cli import cli
from tests.control.incidents.conftest import route
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]
OLD, NEW = timedelta(days=40), timedelta(days=2)


def prune(*more: str) -> dict[str, Any]:
    date = (timezone.now() - timedelta(days=30)).date().isoformat()
    found: dict[str, Any] = json.loads(cli("prune", "--before", date, *more))
    return found


def incident(name: str, at: datetime, *, over: bool, run: str | None = None) -> Incident:
    """Opened and told on every route, and then resolved, which is told too."""
    made = cases.open_(Case(key=f"{name}:tripped", rule="tripped", title=name, at=at, run=run), at)
    Delivery.objects.filter(incident=made).update(state=Delivery.State.DELIVERED, done_at=at, code=202)
    if over:
        cases.resolve(made, at, by="ann")
        Delivery.objects.filter(incident=made, action="resolve").update(state="delivered", done_at=at)
    return made


def backtest(at: datetime, state: str) -> Backtest:
    made = Backtest.objects.create(by="ann", state=state, created_at=at, finished_at=None if state == "running" else at)
    made.pieces.create(number=0, runs=["r"])
    made.results.create(
        place=0, run_id="r", agent="a", status="tripped", healthy=False, outcome="stopped", rule="x"
    )  # fmt: skip
    return made


def written_in(run: Run, at: datetime) -> None:
    """A postmortem that people have worked on: a text, an action item, a link for others."""
    editing.write(run, "summary", "It looped.", number=0, by="ann", now=at)
    editing.add_action(run, kind="prevent", text="a fuse", owner="", link="", due="", by="ann", now=at)
    shares.make(run.pk, hours=24, note="", by="ann", now=at)


def test_old_incidents_go_with_their_deliveries_and_open_ones_stay_however_old() -> None:
    now = timezone.now()
    way = route("http://127.0.0.1:9/")
    for name, at, over in (("old", now - OLD, True), ("new", now - NEW, True), ("open", now - OLD, False)):
        incident(name, at, over=over)
    for at in (now - OLD, now - NEW):
        Delivery.objects.create(
            route=way, action="test", key="t", created_at=at, due_at=at, state="delivered", done_at=at
        )  # fmt: skip
    before = (Incident.objects.count(), Delivery.objects.count(), IncidentNote.objects.count())
    told = prune("--dry-run")
    assert (told["incidents"], told["deliveries"]) == (1, 3), "first notice and end of the old one, and the old test"
    assert (Incident.objects.count(), Delivery.objects.count(), IncidentNote.objects.count()) == before
    done = prune()
    assert (done["incidents"], done["deliveries"]) == (1, 3)
    assert set(Incident.objects.values_list("title", flat=True)) == {"new", "open"}
    assert Delivery.objects.count() == before[1] - 3 and not IncidentNote.objects.filter(text="old").exists()
    assert prune()["incidents"] == 0


def test_what_people_wrote_about_a_run_goes_with_it_and_not_before(operator: Caller) -> None:
    now = timezone.now()
    gone, kept = make_run(), make_run()
    for run, at in ((gone, now - OLD), (kept, now - NEW)):
        write(run, RunTripped(step=1, rule="repeats"))
        Run.objects.filter(pk=run.pk).update(finished_at=at)
        written_in(run, at)
    still = incident("of the old run", now - OLD, over=False, run=gone.pk)
    told = prune("--dry-run")
    assert (told["runs"], told["postmortems"]) == (1, 1) and Postmortem.objects.count() == 2
    done = prune()
    assert (done["runs"], done["postmortems"]) == (1, 1)
    for model in (Postmortem, PostmortemRevision, ActionItem, ShareLink):
        assert model.objects.count() == 1, model
    assert Postmortem.objects.get().pk == kept.pk and ShareLink.objects.get().run_id == kept.pk
    # Nobody has resolved this one: it can still be read and resolved, though its run is gone.
    shown = operator.get(f"/api/incidents/{still.pk}")
    assert shown.status == 200 and shown.body["run"] == gone.pk
    assert operator.post(f"/api/incidents/{still.pk}/resolve", {"text": "old"}).status in (200, 202)


def test_old_backtests_go_whole_and_one_that_runs_stays() -> None:
    now = timezone.now()
    for at, state in ((now - OLD, "done"), (now - OLD, "cancelled"), (now - OLD, "running"), (now - NEW, "done")):
        backtest(at, state)
    assert prune("--dry-run")["backtests"] == prune()["backtests"] == 2
    assert Backtest.objects.count() == BacktestPiece.objects.count() == BacktestResult.objects.count() == 2
