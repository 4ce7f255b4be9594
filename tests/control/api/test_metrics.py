"""/metrics: what Prometheus' own parser makes of it, what it counts, and that its size stays bounded."""

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from agents import kinds
from agents.events import draft
from agents.ids import new_id
from control.api import retention
from control.incidents import cases
from control.incidents.models import Delivery
from control.runs import counters, log
from control.runs.families import FAMILIES, MOST_LABELS
from control.runs.meter import METER
from control.runs.models import Counter, Run
from tests.control.api.callers import Caller
from tests.control.incidents.conftest import route
from tests.control.records import batch, make_run, write

pytestmark = pytest.mark.django_db(transaction=True)
STOPPED = {"sockets": 1, "processes": 2, "children": 0, "abandoned": [], "seconds": 0.2, "verified": True}


@pytest.fixture(autouse=True)
def _as_on_one_machine(settings) -> None:
    settings.EMBEDDED = True
    counters._kept.clear()


def scrape(caller: Caller) -> dict[str, list[Sample]]:
    """The samples by family, as Prometheus reads them; raises for what it does not."""
    text = caller.get("/metrics").body.decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family.samples for family in families}


def value(samples: list[Sample], name: str, **labels: str) -> float:
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert len(found) == 1, (name, labels, samples)
    return found[0]


def play(run: Run, *steps: tuple[float, kinds.Body, int | None, str | None]) -> None:
    """Append bodies that happened these many seconds after a fixed moment."""
    start = datetime.now(UTC) - timedelta(minutes=5)
    drafts = [draft(body, at=start + timedelta(seconds=s), turn=turn, call=call) for s, body, turn, call in steps]
    log.append([batch(run, *drafts)])


def a_turn(run: Run, *, model: str = "m-1", credential: str = "main", tool: str = "run_command") -> None:
    chat, ran = new_id(), new_id()
    asked = kinds.CallStarted(operation="chat", name=model, model=model, provider="openai", credential=credential)
    failed = kinds.CallRetried(
        error={"reason": "rate_limit", "status": 429}, action="retry", wait_s=1, until="", attempt=1, cost_source="none"
    )
    usage = {"input": 100, "cache_read": 40, "output": 7}
    answered = kinds.CallCompleted(
        operation="chat",
        name=model,
        status="ok",
        usage=usage,
        cost_usd="0.25",
        cost_source="price_table",
        ttft_ms=300,
        duration_ms=1500,
    )
    play(
        run,
        (0, kinds.TurnStarted(), 1, None),
        (0, asked, 1, chat),
        (1, failed, 1, chat),
        (2, answered, 1, chat),
        (2, kinds.CallStarted(operation="execute_tool", name=tool), 1, ran),
        (5, kinds.CallCompleted(operation="execute_tool", name=tool, status="ok"), 1, ran),
        (6, kinds.TurnCompleted(), 1, None),
    )


def test_every_family_is_there_from_the_beginning_with_its_type(stranger: Caller) -> None:
    text = stranger.get("/metrics").body.decode()
    types = {f.name: f.type for f in text_string_to_metric_families(text)}
    for name, kind in FAMILIES.items():
        assert types[f"pilothouse_{name.removesuffix('_total')}"] == kind.kind
    assert all(line.startswith(("#", "pilothouse_")) for line in text.splitlines())


def test_a_turn_is_counted_with_its_calls_its_error_and_its_spend(stranger: Caller) -> None:
    a_turn(make_run())
    counters.count()
    seen = scrape(stranger)
    assert value(seen["pilothouse_turn_seconds"], "pilothouse_turn_seconds_sum") == 6
    assert value(seen["pilothouse_model_call_seconds"], "pilothouse_model_call_seconds_sum", model="m-1") == 1.5
    buckets = seen["pilothouse_tool_seconds"]
    assert value(buckets, "pilothouse_tool_seconds_bucket", tool="run_command", le="2.5") == 0
    assert value(buckets, "pilothouse_tool_seconds_bucket", tool="run_command", le="5") == 1
    assert value(buckets, "pilothouse_tool_seconds_bucket", tool="run_command", le="+Inf") == 1
    errors = seen["pilothouse_provider_errors"]
    assert value(errors, "pilothouse_provider_errors_total", provider="openai", reason="rate_limit") == 1
    spend = seen["pilothouse_spend_usd"]
    assert value(spend, "pilothouse_spend_usd_total", model="m-1", credential="main") == 0.25
    assert value(seen["pilothouse_tokens"], "pilothouse_tokens_total", direction="cache_read") == 40
    assert value(seen["pilothouse_events_appended"], "pilothouse_events_appended_total") == 8
    assert value(seen["pilothouse_uncounted_events"], "pilothouse_uncounted_events") == 0


def test_the_latency_of_stops_is_a_histogram_from_which_quantiles_can_be_had(
    stranger: Caller, operator: Caller
) -> None:
    for _ in range(3):
        run = make_run()
        command = operator.post(f"/api/runs/{run.pk}/interrupt").body["command"]
        write(run, kinds.RunInterrupted(command=command, by="ann", reason="", stopped=STOPPED))
    counters.count()
    seen = scrape(stranger)
    assert value(seen["pilothouse_stop_seconds"], "pilothouse_stop_seconds_count") == 3
    assert value(seen["pilothouse_stops"], "pilothouse_stops_total", verified="true") == 3
    assert value(seen["pilothouse_runs_ended"], "pilothouse_runs_ended_total", status="interrupted") == 3
    for quantile in ("0.5", "0.95"):
        assert (
            value(seen["pilothouse_stop_last_hour_seconds"], "pilothouse_stop_last_hour_seconds", quantile=quantile) < 5
        )


def test_events_are_counted_once_however_often_and_by_whomever_they_are_looked_at(stranger: Caller) -> None:
    run = make_run()
    a_turn(run)
    counters.count()
    counters.count()
    counters._kept.clear()  # another desk, which remembers nothing of the run
    a_turn(run)
    counters.count()
    seen = scrape(stranger)
    assert value(seen["pilothouse_turn_seconds"], "pilothouse_turn_seconds_count") == 2
    assert value(seen["pilothouse_spend_usd"], "pilothouse_spend_usd_total") == 0.5


def test_two_desks_that_count_at_once_count_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    a_turn(make_run())
    late = counters.following.behind(counters.READER, 10)
    counters.count()
    counters._kept.clear()
    monkeypatch.setattr(counters.following, "behind", lambda *_: late)
    counters.count()
    assert Counter.objects.get(family="turn_seconds", part="sum").value == 6


def test_a_call_that_is_open_between_two_looks_is_measured_whole(stranger: Caller) -> None:
    run, call = make_run(), new_id()
    play(run, (0, kinds.CallStarted(operation="execute_tool", name="run_command"), 1, call))
    counters.count()
    play(run, (9, kinds.CallCompleted(operation="execute_tool", name="run_command", status="ok"), 1, call))
    counters.count()
    total = value(scrape(stranger)["pilothouse_tool_seconds"], "pilothouse_tool_seconds_sum", tool="run_command")
    assert 8.9 < total < 9.5


def test_verdicts_are_counted_by_rung_and_rule(stranger: Caller) -> None:
    verdict = kinds.VerdictIssued(
        detector="repeat",
        rung="block",
        rule="same_call",
        fingerprint="f",
        step=3,
        count=3,
        evidence=[1],
        wasted_tokens=0,
        wasted_usd=None,
        explanation="",
        shadow=False,
    )
    write(make_run(), verdict)
    counters.count()
    samples = scrape(stranger)["pilothouse_guard_verdicts"]
    assert value(samples, "pilothouse_guard_verdicts_total", rung="block", rule="same_call", shadow="false") == 1


def test_names_that_models_make_up_do_not_grow_the_page_for_ever(stranger: Caller) -> None:
    run = make_run()
    for number in range(MOST_LABELS + 30):
        call = new_id()
        name = f'tool "{number}"\n\\'
        play(
            run,
            (0, kinds.CallStarted(operation="execute_tool", name=name), 1, call),
            (1, kinds.CallCompleted(operation="execute_tool", name=name, status="ok"), 1, call),
        )
        refused = kinds.CallCompleted(operation="execute_tool", name=f"never {number}", status="not_started")
        write(run, refused, turn=1, call=new_id())
    counters.count()
    tools = {s.labels["tool"] for s in scrape(stranger)["pilothouse_tool_calls"]}
    assert len(tools) <= MOST_LABELS + 1
    assert "other" in tools and "not_started" in tools and 'tool "1"\n\\' in tools


def test_totals_do_not_go_back_when_old_runs_are_dropped(stranger: Caller) -> None:
    run = make_run()
    a_turn(run)
    write(run, kinds.RunCompleted(final="done"))
    counters.count()
    before = scrape(stranger)["pilothouse_spend_usd"]
    retention.drop(datetime.now(UTC) + timedelta(days=1))
    counters.count()
    assert not Run.objects.exists()
    assert scrape(stranger)["pilothouse_spend_usd"] == before


def test_what_one_web_process_has_sent_is_told_as_its_own(stranger: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METER, "frames", 12)
    seen = scrape(stranger)["pilothouse_web_process_frames"]
    assert value(seen, "pilothouse_web_process_frames_total") == 12


def test_open_incidents_and_deliveries_are_told_by_severity_and_result(stranger: Caller) -> None:
    now = datetime.now(UTC)
    way = route("http://127.0.0.1:9/", "slack")
    early, late = (now - timedelta(minutes=ago) for ago in (9, 2))
    opened = [
        cases.open_(cases.Case(key=f"run:{rule}{n}:x", rule=rule, title="t", at=at), at)
        for n, (rule, at) in enumerate((("tripped", early), ("lost", late), ("spend", late), ("budget", late)))
    ]
    cases.acknowledge(opened[0], "ann", now)
    cases.resolve(opened[3], now, by="ann")
    Delivery.objects.filter(incident=opened[1]).update(state="delivered")
    Delivery.objects.filter(incident=opened[2]).update(state="failed")
    seen = scrape(stranger)

    def incidents(severity: str, state: str) -> float:
        return value(seen["pilothouse_incidents_open"], "pilothouse_incidents_open", severity=severity, state=state)

    assert (incidents("error", "open"), incidents("error", "acknowledged"), incidents("critical", "open")) == (1, 1, 1)
    assert incidents("warning", "open") == incidents("info", "open") == 0
    (oldest,) = seen["pilothouse_incident_unacknowledged_seconds"]
    assert 119 < oldest.value < 180

    def deliveries(transport: str, result: str) -> float:
        return value(seen["pilothouse_deliveries"], "pilothouse_deliveries", transport=transport, result=result)

    states = ("due", "sending", "delivered", "failed", "dropped")
    rows = Delivery.objects.filter(route=way)
    assert {state: deliveries("slack", state) for state in states} == {
        state: rows.filter(state=state).count() for state in states
    }
    assert deliveries("slack", "delivered") == deliveries("slack", "failed") == 1
    assert deliveries("email", "failed") == 0
    (overdue,) = seen["pilothouse_delivery_overdue_seconds"]
    assert overdue.value > 500, "one that was due nine minutes ago was never sent"
