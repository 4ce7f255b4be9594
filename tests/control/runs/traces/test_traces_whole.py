"""Traces of a real run: worker, desk, sub-agent and a collector that reads the protobuf."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.control.runs.processes import House, answered, events, reach, row, until
from tests.control.runs.traces.collector import Collector
from tests.scripted_server import Response, ask_tools, say, status

MakeHouse = Callable[..., House]
TASK = "count the paper clips"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def _script() -> Callable[[Any], Response]:
    refused: list[bool] = []

    def script(request: Any) -> Response:
        task, results = request["messages"][1]["content"], answered(request)
        if not refused:
            refused.append(True)
            return status(429, retry_after=0)
        if "clips" in task and not results:
            return ask_tools(("run_command", {"command": "echo seven"}), ("delegate", {"task": "look in the drawer"}))
        return say("seven")

    return script


def test_a_tree_of_runs_is_one_trace_with_the_names_of_the_conventions(
    make_house: MakeHouse, collector: Collector
) -> None:
    house = make_house(_script(), OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
    house.worker()
    house.desk()
    run = house.begin(TASK)
    reach(run, "completed", "failed")
    assert row(run).status == "completed"
    until(lambda: len([s for s in collector.spans if s.name.startswith("invoke_agent")]) == 2, 20, "both have arrived")
    by_id = {span.id: span for span in collector.spans}
    assert len(by_id) == len(collector.spans)
    assert {span.trace for span in collector.spans} == {run.replace("-", "")}
    (root,) = [span for span in collector.spans if not span.parent]
    (child,) = [span for span in collector.spans if span.name.startswith("invoke_agent") and span.parent]
    call = by_id[child.parent]
    assert (call.name, by_id[call.parent].id) == ("execute_tool delegate", root.id)
    assert root.attributes["pilothouse.run.id"] == run
    assert child.attributes["pilothouse.run.id"] != run
    below = sorted(span.name for span in collector.spans if span.parent == root.id)
    assert below == ["chat m", "chat m", "execute_tool delegate", "execute_tool run_command"]
    assert [span.name for span in collector.spans if span.parent == child.id] == ["chat m"]
    for span in collector.spans:
        if span.parent:
            above = by_id[span.parent]
            assert above.began <= span.began <= span.ended <= above.ended, (span.name, above.name)
    _has_the_attributes(collector, run)
    assert not any(word in body for body in collector.bodies for word in (b"paper clips", b"seven", b"drawer"))


def _has_the_attributes(collector: Collector, run: str) -> None:
    first, *_ = sorted(collector.named("chat m"), key=lambda span: span.began)
    assert first.kind == 3
    attributes = first.attributes
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "m" and attributes["gen_ai.provider.name"]
    assert attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    (completed, *_) = [e["data"] for e in events(run) if e["kind"] == "call.completed"]
    assert attributes["gen_ai.usage.output_tokens"] == completed["usage"]["output"]
    assert [name for name, _ in first.events] == ["pilothouse.attempt_failed"]
    assert first.events[0][1]["error.type"] == "rate_limit"
    (tool,) = collector.named("execute_tool run_command")
    assert tool.attributes["gen_ai.tool.name"] == "run_command" and tool.attributes["gen_ai.tool.call.id"]


def test_without_an_address_no_desk_loads_the_sdk(make_house: MakeHouse) -> None:
    house = make_house(lambda request: say("done"))
    house.worker()
    desk = house.desk()
    reach(house.begin(), "completed")
    with open(f"/proc/{desk.pid}/maps", encoding="utf-8") as maps:
        assert "protobuf" not in maps.read() and "_upb" not in maps.read()
