"""A run that plays a recorded one costs nothing and wakes nobody, wherever spend is added up and rules look."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from agents import kinds
from control.dashboard import fleet_rows
from control.incidents import intake
from control.incidents.models import Gauge, Incident
from control.runs import counters
from control.runs.models import Counter, Run
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    counters._kept.clear()
    yield
    counters._kept.clear()


def spending(mode: str | None, usd: str) -> Run:
    """A run with one paid call, one failed attempt at it, and an end that trips; of a mode of replay, or none."""
    original = make_run().pk if mode else None
    # As `specs.to_json` writes it: a run that plays nothing holds a null.
    recorded = {"run": original, "from_turn": 0} if mode == "recorded" else None
    run = make_run(replay_of=original, spec={"recorded": recorded})
    if original is not None:
        write(run, kinds.RunReplayed(run=original, mode=str(mode), by="ann"))
    write(run, kinds.CallStarted(operation="chat", name="m", model="m", provider="p"), turn=1, call="c1")
    error = {"reason": "rate_limit", "status": 429}
    write(run, kinds.CallRetried(error=error, action="retry", wait_s=1, until="", attempt=1), turn=1, call="c1")
    usage = {"input": 900, "output": 100}
    paid = kinds.CallCompleted(
        operation="chat", name="m", status="ok", usage=usage, cost_usd=usd, cost_source="reported"
    )
    write(run, paid, turn=1, call="c1")
    write(run, kinds.RunTripped(step=1, rule="repeats"))
    return run


@pytest.mark.parametrize(("mode", "counts"), [(None, True), ("live", True), ("recorded", False)])
def test_only_what_was_paid_counts_in_strip_gauge_metrics_and_opens_incidents(mode: str | None, counts: bool) -> None:
    run = spending(mode, "0.75")
    assert Run.objects.get(pk=run.pk).cost_usd == Decimal("0.75"), "the row tells what it would have cost"
    now = datetime.now(UTC)
    strip = fleet_rows.strip(now)["spend"]
    usd, tokens = (Decimal("0.75"), 1_000) if counts else (Decimal(0), 0)
    assert (strip["usd"], strip["tokens"], strip["today"], strip["tokens_today"]) == (usd, tokens, usd, tokens)
    day = {item["state"].word: item["count"] for item in fleet_rows.strip(now)["day"]}
    assert day["Tripped"] == int(counts), "a rehearsal is no trip of the day"
    assert fleet_rows.select(fleet_rows.Filters(view="tripped"), now).filter(pk=run.pk).exists() is counts

    intake.take_in()
    assert Gauge.objects.filter(name=intake.SPEND).exists() is counts
    assert Gauge.objects.filter(name__startswith=intake.ERRORS).exists() is counts
    assert list(Incident.objects.values_list("rule", flat=True)) == (["tripped"] if counts else [])

    counters.count()
    families = set(Counter.objects.values_list("family", flat=True))
    counted = {"spend_usd_total", "provider_errors_total", "runs_ended_total"}
    assert families & counted == (counted if counts else set())
