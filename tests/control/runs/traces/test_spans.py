"""The fold from a log to spans, and the sender that moves its cursors only when a collector has taken them."""

from collections.abc import Iterator, Sequence

import pytest

from agents import kinds
from agents.ids import new_id
from agents.kinds import Body
from control.runs import following
from control.runs.models import Cursor, Run
from control.runs.traces.otlp import Exporter
from control.runs.traces.sender import READER, Sender
from control.runs.traces.spans import Span, span_id, trace_id
from tests.control.records import make_run, write
from tests.control.runs.traces.collector import Collector

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "the task and its words"
STARTED = kinds.RunStarted(
    worker="w-1",
    host="h",
    epoch=1,
    model={"model": "m-1", "provider": "azure"},
    policy="default",
    limits={},
    prompt={},
    tools={},
)


def chat_starts() -> Body:
    return kinds.CallStarted(operation="chat", name="m-1", model="m-1", provider="azure", credential="main")


def chat_ends(**more: object) -> Body:
    usage = {"input": 100, "cache_read": 30, "cache_write": 5, "output": 9, "reasoning": 4}
    told = {"status": "ok", "text": SECRET, "finish_reason": "tool_calls", "usage": usage, "cost_usd": "0.01", **more}
    return kinds.CallCompleted(operation="chat", name="m-1", **told)  # type: ignore[arg-type]


def tool_starts() -> Body:
    return kinds.CallStarted(operation="execute_tool", name="run_command", args=SECRET, wire_id="call_7")


def tool_ends(status: str = "ok") -> Body:
    return kinds.CallCompleted(operation="execute_tool", name="run_command", status=status, args=SECRET, result=SECRET)


class Taker:
    """Stands where the exporter stands; `takes` says what arrives."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.takes = lambda spans: True

    def __call__(self, spans: Sequence[Span]) -> bool:
        taken = self.takes(spans)
        if taken:
            self.spans += spans
        return taken


@pytest.fixture
def taker() -> Taker:
    return Taker()


@pytest.fixture
def sender(taker: Taker) -> Sender:
    return Sender(taker)


def test_a_run_becomes_one_span_with_its_calls_below_it(taker: Taker, sender: Sender) -> None:
    run, chat, tool = make_run(), new_id(), new_id()
    write(run, STARTED)
    write(run, chat_starts(), turn=1, call=chat)
    write(run, chat_ends(), turn=1, call=chat)
    write(run, tool_starts(), turn=1, call=tool)
    write(run, tool_ends("error"), turn=1, call=tool)
    write(run, kinds.RunCompleted(final=SECRET))
    sender.turn()
    asked, ran, whole = taker.spans
    assert (whole.name, whole.parent, whole.trace) == ("invoke_agent default", None, trace_id(run.pk))
    assert whole.attributes["gen_ai.usage.input_tokens"] == 135
    assert whole.attributes["pilothouse.run.status"] == "completed" and whole.fault is None
    assert (asked.name, asked.parent, asked.client) == ("chat m-1", whole.id, True)
    assert asked.attributes["gen_ai.provider.name"] == "azure.ai.openai"
    assert asked.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert asked.attributes["gen_ai.usage.output_tokens"] == 9
    assert (ran.name, ran.parent, ran.fault) == ("execute_tool run_command", whole.id, "error")
    assert ran.attributes["gen_ai.tool.call.id"] == "call_7"
    assert SECRET not in repr(taker.spans)


def test_spans_go_out_as_calls_end_and_each_once(taker: Taker, sender: Sender) -> None:
    run, chat = make_run(), new_id()
    write(run, STARTED)
    write(run, chat_starts(), turn=1, call=chat)
    sender.turn()
    assert taker.spans == []
    write(run, chat_ends(), turn=1, call=chat)
    sender.turn()
    sender.turn()
    assert [span.name for span in taker.spans] == ["chat m-1"]
    write(run, kinds.RunCompleted(final=""))
    Sender(taker).turn()  # another desk, which has seen nothing of the run
    assert [span.name for span in taker.spans] == ["chat m-1", "invoke_agent default"]
    assert taker.spans[1].attributes["gen_ai.usage.input_tokens"] == 135
    assert following.behind(READER, 10) == []


def test_a_sub_agent_hangs_below_the_call_that_started_it(taker: Taker, sender: Sender) -> None:
    call = new_id()
    parent = make_run()
    child = make_run(parent=parent, parent_call=call)
    write(child, kinds.RunCompleted(final=""))
    sender.turn()
    (span,) = taker.spans
    assert (span.trace, span.parent) == (trace_id(parent.pk), span_id(parent.pk, call))


def test_attempts_that_failed_are_told_within_the_call(taker: Taker, sender: Sender) -> None:
    run, chat = make_run(), new_id()
    failed = kinds.CallRetried(
        error={"reason": "overloaded", "status": 529, "message": SECRET}, action="retry", wait_s=2, until="", attempt=1
    )
    for body in (chat_starts(), failed, chat_ends(status="error", usage=None)):
        write(run, body, turn=1, call=chat)
    sender.turn()
    (span,) = taker.spans
    (moment,) = span.moments
    assert moment.name == "pilothouse.attempt_failed"
    assert moment.attributes["http.response.status_code"] == 529
    assert span.fault == "overloaded"
    assert SECRET not in repr(taker.spans)


def test_a_run_that_ends_with_open_calls_closes_their_spans(taker: Taker, sender: Sender) -> None:
    run, tool = make_run(), new_id()
    write(run, tool_starts(), turn=1, call=tool)
    write(run, kinds.RunLost(worker="w-1", last_seen=None))
    sender.turn()
    left, whole = taker.spans
    assert (left.id, left.fault, left.parent) == (span_id(run.pk, tool), "effect_unknown", whole.id)
    assert whole.fault == "worker_lost"


def test_a_collector_that_is_away_loses_no_span(taker: Taker, sender: Sender) -> None:
    run = make_run()
    write(run, kinds.RunCompleted(final=""))
    taker.takes = lambda spans: False
    sender.turn()
    assert not Cursor.objects.exists()
    taker.takes = lambda spans: True
    assert sender.turn() == 0, "it rests first"
    sender._not_before = 0.0
    sender.turn()
    assert [span.name for span in taker.spans] == ["invoke_agent default"]


def test_spans_that_a_collector_refuses_hold_up_no_others(taker: Taker, sender: Sender) -> None:
    bad, good = make_run(), make_run()
    for run in (bad, good):
        write(run, kinds.RunCompleted(final=""))
    taker.takes = lambda spans: all(span.id != span_id(bad.pk) for span in spans)
    sender.turn()
    assert [span.id for span in taker.spans] == [span_id(good.pk)]
    assert following.behind(READER, 10) == []


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=night")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "pilothouse-west")
        yield collector


def test_a_collector_gets_what_the_standard_variables_say(collector: Collector) -> None:
    run = make_run()
    write(run, STARTED)
    write(run, kinds.RunTripped(step=3, fuse="max_steps"))
    exporter = Exporter()
    Sender(exporter.send).turn()
    exporter.close()
    (span,) = collector.spans
    assert collector.headers[0]["path"] == "/v1/traces" and collector.headers[0]["x-team"] == "night"
    assert span.resource["service.name"] == "pilothouse-west"
    assert span.trace == run.pk.replace("-", "")
    assert (span.failed, span.attributes["error.type"]) == (True, "fuse:max_steps")
    assert 0 <= span.ended - span.began < 60_000_000_000
    ended = Run.objects.get(pk=run.pk).finished_at
    assert ended is not None and abs(span.ended / 1e9 - ended.timestamp()) < 5
