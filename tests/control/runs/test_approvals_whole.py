"""Approvals, servers and notes with real workers: parked, answered, taken up again; killed and cleaned up after."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.commands import CommandKind
from control.fleet import agents as agents_by_name
from control.fleet import versions
from control.fleet.models import Agent, Memory
from control.runs import inbox
from tests.control.runs.processes import House, events, holder_pid, kinds, marked, reach, row, until
from tests.scripted_server import Response, ask_tools, say

MakeHouse = Callable[..., House]
SERVER = str(Path(__file__).parents[2] / "agents" / "tools" / "mcp" / "server.py")
RULES = {"name": "watched", "approvals": [{"tool": "run_command", "when": {"command": "git push*"}}]}


def results(request: Any) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def decide(run: str, decision: str, **more: Any) -> inbox.Issued:
    args = {"call": row(run).waiting_call, "decision": decision, **more}
    return inbox.issue(run_id=run, kind=CommandKind.ANSWER, by="ann", args=args)


def decided(run: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events(run) if event["kind"] == "run.continued"]


def save(name: str, **fields: Any) -> None:
    base = agents_by_name.current("default")
    assert base is not None
    values = {"prompt": base.prompt, "tools": base.tools, "policy": "default", **fields}
    versions.save(Agent, name, values, by="ann")


def test_an_approval_parks_the_run_and_the_answer_takes_it_up_again(make_house: MakeHouse) -> None:
    push = ask_tools(("run_command", {"command": "git push; echo pushed"}))
    house = make_house(lambda request: say("done") if results(request) else push, PARK_AFTER_SECONDS="0.3")
    house.worker()
    run = house.begin(policy=RULES)
    until(lambda: row(run).waiting_for == "approval" and row(run).lease_until is None, what="it is parked")
    assert not [event for event in events(run) if event["kind"] == "call.completed" and event["data"].get("result")]
    assert decide(run, "edit", args={"command": "echo nothing pushed"}).changed
    house.publish(run)
    reach(run, "completed")
    ended = [e["data"] for e in events(run) if e["kind"] == "call.completed" and e["data"]["name"] == "run_command"]
    assert len(ended) == 1 and "nothing pushed" in ended[0]["result"] and "ann changed" in ended[0]["result"]
    assert [one["decision"] for one in decided(run)] == ["edit"]


def test_a_denied_call_does_not_run_and_the_model_hears_why(make_house: MakeHouse) -> None:
    heard: list[str] = []

    def script(request: Any) -> Response:
        heard.extend(results(request))
        return say("done") if heard else ask_tools(("run_command", {"command": "git push"}))

    house = make_house(script)
    house.worker()
    run = house.begin(policy=RULES)
    until(lambda: row(run).waiting_for == "approval", what="it asks")
    assert decide(run, "deny", reason="not today").changed
    reach(run, "completed")
    assert "a person (ann) denied" in heard[0] and "not today" in heard[0]


@pytest.mark.chaos
def test_the_servers_of_a_killed_worker_end_with_it_and_the_next_one_starts_its_own(make_house: MakeHouse) -> None:
    servers = [{"name": "t", "command": sys.executable, "args": [SERVER, "stdio"]}]
    save("with_servers", mcp_servers=servers)

    def script(request: Any) -> Response:
        if "interrupted" in str(results(request)) or len(results(request)) > 1:
            return say("done")
        return ask_tools(("mcp__t__hang", {"note": "x"})) if not results(request) else say("done")

    house = make_house(script)
    first = house.worker()
    house.desk()
    run = house.begin(agent="with_servers")
    until(lambda: "call.started" in kinds(run) and row(run).activity.startswith("mcp__t__hang"), what="it hangs")
    assert holder_pid(run) == first.pid
    running = marked("PILOTHOUSE_RUN", run)
    assert running
    first.kill()
    until(lambda: not marked("PILOTHOUSE_RUN", run), what="the server of the dead worker has ended")
    house.worker()
    reach(run, "completed", within=40)
    until(lambda: not marked("PILOTHOUSE_RUN", run), what="its successor's has ended too")
    lost = [e["data"]["status"] for e in events(run) if e["kind"] == "call.completed" and "hang" in e["data"]["name"]]
    assert lost == ["effect_unknown"]
    assert kinds(run).count("server.connected") == 2


def test_what_a_run_keeps_the_next_one_reads(make_house: MakeHouse) -> None:
    save("keeper", tools=["remember"])
    systems: list[str] = []

    def script(request: Any) -> Response:
        systems.append(request["messages"][0]["content"])
        return say("done") if results(request) else ask_tools(("remember", {"note": "It builds with ninja."}))

    house = make_house(script)
    house.worker()
    first = house.begin(agent="keeper")
    reach(first, "completed")
    assert Memory.objects.get().author == f"run:{first}"
    second = house.begin(agent="keeper")
    reach(second, "completed")
    assert "memory.injected" not in kinds(first) and kinds(second)[2] == "memory.injected"
    assert "It builds with ninja." not in systems[0] and "- It builds with ninja." in systems[-1]
    assert Memory.objects.count() == 1


def test_a_parked_run_that_is_interrupted_leaves_no_call_without_a_result(make_house: MakeHouse) -> None:
    two = ask_tools(("run_command", {"command": "git push"}), ("run_command", {"command": "echo behind it"}))
    house = make_house(lambda request: say("done") if results(request) else two, PARK_AFTER_SECONDS="0.2")
    house.worker()
    run = house.begin(policy=RULES)
    until(lambda: row(run).waiting_for == "approval" and row(run).lease_until is None, what="it is parked")
    inbox.issue(run_id=run, kind=CommandKind.INTERRUPT, by="ann")
    assert row(run).status == "interrupted"
    ended = [e["data"] for e in events(run) if e["kind"] == "call.completed" and e["data"]["name"] == "run_command"]
    assert [one["status"] for one in ended] == ["not_started", "not_started"]
