"""Runs under the guard: what is refused, answered as unchanged, hinted at and stopped, live and after a resume."""

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.commands import CommandKind
from agents.errors import LoopIncident
from agents.events import decode
from agents.messages import Usage
from agents.policy.fuses import Trip
from agents.policy.limits import limits_from
from agents.policy.policies import policy_from, shipped
from agents.policy.recorded import judge_sequence
from agents.policy.sequences import sequence_of
from agents.ports import Edit, ToolContext, ToolOutput
from agents.spec import ConcurrencyClass, ModelSpec, Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command, echo


def guarded(model: Any, policy: str | Mapping[str, Any], tools: Any, **more: Any) -> MemoryRun:
    body = shipped(policy) if isinstance(policy, str) else policy
    name = policy if isinstance(policy, str) else "own"
    limits = limits_from({k: v for k, v in body.get("fuses", {}).items() if k in ("max_steps", "max_tokens")}, "policy")
    spec = more.pop("spec", None) or memory_spec(policy=name, policy_body=body, limits=limits, **more.pop("frozen", {}))
    return memory_run(model, tools=tools, spec=spec, **more)


def failing(text: str = "Error: connection to billing timed out") -> FunctionTool:
    async def work(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text=text, is_error=True)

    return FunctionTool("get_invoice", work, concurrency=ConcurrencyClass.UNKNOWN)


def insisting(tool: str = "get_invoice", args: Mapping[str, Any] | None = None) -> ScriptedModel:
    return ScriptedModel(lambda _: asks((tool, args or {"invoice_id": 100})))


def statuses(run: MemoryRun) -> list[str]:
    return [c.status for c in run.log.of("call.completed") if c.operation == "execute_tool"]


def rungs(run: MemoryRun) -> list[tuple[str, str]]:
    return [(v.rung, v.rule) for v in run.log.of("verdict.issued")]


# --- the night of the postmortem -------------------------------------------------------------------------------------


async def test_strict_trips_on_the_third_identical_call_so_that_a_fourth_never_happens() -> None:
    tool = echo("run_tests")
    run = guarded(insisting("run_tests", {"path": "tests"}), "strict", [tool])
    ended = await run.drive()
    assert ended.status is Status.TRIPPED
    assert len(tool.ran) == 2
    end = run.log.events[-1].data
    assert (end.fuse, end.rule, end.step) == ("max_identical_calls", None, 3)
    assert (end.verdict["count"], end.verdict["rung"]) == (3, "stop")
    assert end.verdict["advice"]


async def test_strict_trips_when_a_file_has_gone_back_once_too_often() -> None:
    contents = iter("ABABABAB")

    async def work(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        now = next(contents)
        edit = Edit(path="sum.py", before_sha256=None, sha256=now * 64, size=1, state=now, content=now.encode())
        return ToolOutput(text=f"written {now}", edits=(edit,))

    tool = FunctionTool("edit_file", work)
    model = ScriptedModel(lambda messages: asks(("edit_file", {"n": len(messages)})))
    run = guarded(model, "strict", [tool])
    assert (await run.drive()).status is Status.TRIPPED
    assert len(tool.ran) == 5
    assert run.log.events[-1].data.fuse == "max_oscillations"
    assert statuses(run) == ["ok"] * 5


async def test_strict_trips_on_its_tokens_before_another_tool_runs() -> None:
    tool, answers = echo(), iter([Usage(input=1000, output=500), Usage(input=400, output=200)])

    class Counting(ScriptedModel):
        async def ask(self, request: Any, on_text: Any) -> Any:
            self._usage = next(answers)
            return await super().ask(request, on_text)

    body = {**shipped("strict"), "fuses": {**shipped("strict")["fuses"], "max_tokens": 2000}}
    run = guarded(Counting(lambda messages: asks(("echo", {"say": len(messages)}))), body, [tool])
    assert (await run.drive()).status is Status.TRIPPED
    assert run.log.events[-1].data.fuse == "max_tokens"
    assert len(tool.ran) == 1


# --- the rungs -------------------------------------------------------------------------------------------------------


async def test_default_refuses_the_third_vain_call_and_stops_the_run_at_the_sixth() -> None:
    tool, model = failing(), insisting()
    run = guarded(model, "default", [tool])
    ended = await run.drive()
    assert (ended.status, len(tool.ran)) == (Status.TRIPPED, 2)
    assert statuses(run) == ["error", "error", "blocked", "blocked", "blocked", "blocked"]
    assert rungs(run)[-1] == ("stop", "repeat_error")
    end = run.log.events[-1]
    assert (end.data.rule, end.data.fuse) == ("repeat_error", None)
    evidence = {run.log.events[seq - 1].kind for seq in end.data.verdict["evidence"]}
    assert evidence == {"call.completed"}
    assert "Not run" in model.requests[3][-1]["content"]


async def test_ladder_blocks_the_third_request_and_stops_at_the_sixth() -> None:
    tool = failing()
    run = guarded(insisting(), "ladder", [tool])
    assert (await run.drive()).status is Status.TRIPPED
    assert [rung for rung, _ in rungs(run)] == ["observe", "block", "block", "block", "stop"]
    assert len(tool.ran) == 2


async def test_unchanged_look_is_run_and_answered_as_unchanged_and_a_changed_one_passes() -> None:
    seen: list[str] = []

    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        seen.append("old" if len(seen) < 4 else "something else by now, a new line of the log")
        return f"{seen[-1]}: " + "the same words of a longer answer " * 4

    tool = FunctionTool("read_file", work)
    model = ScriptedModel(lambda _: asks(("read_file", {"path": "a.txt"})) if len(seen) < 5 else "done")
    run = guarded(model, "default", [tool])
    assert (await run.drive()).status is Status.COMPLETED
    first, second, third, fourth, changed = statuses(run)
    assert (first, second, fourth, changed) == ("ok", "ok", "stub", "ok")
    assert third in ("ok", "stub")  # what is weighed may know it one look earlier than the rule
    assert "Unchanged since" in model.requests[4][-1]["content"]
    assert "something else" in model.requests[5][-1]["content"]
    assert ("block", "repeat_read") in rungs(run)
    stub = next(c for c in run.log.of("call.completed") if c.status == "stub")
    assert stub.heard


async def test_steer_rung_tells_the_model_behind_the_result() -> None:
    model = ScriptedModel(lambda messages: asks(("echo", {})) if len(messages) < 8 else "done")
    run = guarded(model, {"ladder": {"observe": 2, "steer": 3}}, [echo()])
    assert (await run.drive()).status is Status.COMPLETED
    assert ("steer", "ladder") in rungs(run)
    assert run.log.of("hint.injected")
    assert any("[Guard: ladder" in str(m["content"]) for m in model.requests[-1])


async def test_escalation_gives_one_turn_to_the_stronger_model() -> None:
    asked: list[str] = []

    class Named(ScriptedModel):
        async def ask(self, request: Any, on_text: Any) -> Any:
            asked.append(self.name)
            return await super().ask(request, on_text)

    weak, strong = Named(lambda _: asks(("get_invoice", {"id": 1}))), Named(["I see: the service is down."])
    weak.name, strong.name = "weak", "strong"
    spec = memory_spec(
        policy="own",
        policy_body={**shipped("default"), "escalate": {"model": "strong"}},
        model=ModelSpec(model="weak", base_url="http://127.0.0.1:9/v1"),
        fallbacks=(ModelSpec(model="strong", base_url="http://127.0.0.1:9/v1"),),
    )
    from agents.ports import Picked

    class Two:
        async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Picked:
            return Picked(model=(weak, strong)[place], spec=(spec.model, *spec.fallbacks)[place], credential=None)

        async def report(self, report: Any) -> None:
            pass

    run = memory_run(Two(), tools=[failing()], spec=spec)
    assert (await run.drive()).status is Status.COMPLETED
    assert asked == ["weak", "weak", "weak", "strong"]
    assert ("escalate", "repeat_error") in rungs(run)


async def test_shadow_issues_verdicts_and_acts_on_none() -> None:
    tool = failing()
    model = ScriptedModel(lambda messages: asks(("get_invoice", {})) if len(tool.ran) < 9 else "done")
    run = guarded(model, {**shipped("default"), "shadow": True}, [tool])
    assert (await run.drive()).status is Status.COMPLETED
    assert len(tool.ran) == 9
    verdicts = run.log.of("verdict.issued")
    assert {v.rung for v in verdicts} >= {"observe", "block", "stop"}
    assert all(v.shadow for v in verdicts)


async def test_three_equal_calls_of_one_answer_count_once() -> None:
    tool, twice = failing(), [0]

    def script(_: Any) -> Any:
        twice[0] += 1
        return asks(*[("get_invoice", {"id": 1})] * 3) if twice[0] < 3 else "done"

    run = guarded(ScriptedModel(script), "default", [tool])
    assert (await run.drive()).status is Status.COMPLETED
    assert statuses(run) == ["error"] * 6


async def test_a_run_that_trips_says_why_in_its_own_words_if_the_policy_lets_it() -> None:
    model = ScriptedModel(
        lambda messages: (
            "The billing service times out."
            if "stopped by its guard" in messages[-1]["content"]
            else asks(("get_invoice", {}))
        )
    )
    run = guarded(model, {**shipped("default"), "last_word": True}, [failing()])
    ended = await run.drive()
    assert (ended.status, ended.final) == (Status.TRIPPED, "The billing service times out.")
    assert run.log.events[-1].data.final == "The billing service times out."


# --- state that nothing clears but what should -----------------------------------------------------------------------


async def test_a_loop_across_a_resume_is_still_caught() -> None:
    tool = failing()
    run = guarded(insisting(), "default", [tool])
    await run.drive()
    for kept in range(3, len(run.log.events) - 1):
        again = failing()
        half = type(run.log)(run.spec.id)
        half.events[:], half.bodies[:] = run.log.events[:kept], run.log.bodies[:kept]
        resumed = memory_run(insisting(), tools=[again], spec=run.spec, log=half, epoch=2)
        assert (await resumed.drive()).status is Status.TRIPPED, kept
        assert half.events[-1].data.rule == "repeat_error"
        ran = sum(1 for e in half.events if e.kind == "call.started" and e.data.operation == "execute_tool")
        assert ran <= 3, kept
        told = [(e.data.rung, e.data.count) for e in half.events if e.kind == "verdict.issued"]
        assert len(told) == len(set(told)), kept


async def test_a_persons_note_lets_the_model_try_again() -> None:
    tool = failing()

    class Noting(ScriptedModel):
        async def ask(self, request: Any, on_text: Any) -> Any:
            if len(self.requests) == 3:
                run.inbox.send(command(CommandKind.STEER, run.spec.id, note="The service was restarted, try it now."))
            return await super().ask(request, on_text)

    run = guarded(Noting(lambda _: asks(("get_invoice", {}))), "default", [tool])
    assert (await run.drive()).status is Status.TRIPPED
    assert len(tool.ran) == 4
    assert statuses(run)[2:6] == ["blocked", "blocked", "error", "error"]


async def test_a_raised_step_fuse_lets_the_run_go_on() -> None:
    class Raising(ScriptedModel):
        async def ask(self, request: Any, on_text: Any) -> Any:
            if len(self.requests) == 2:
                run.inbox.send(command(CommandKind.RAISE, run.spec.id, limits={"max_steps": 6}))
                await run.log.until("fuse.raised")
            return await super().ask(request, on_text)

    tool = echo()
    model = Raising(lambda messages: asks(("echo", {"say": len(messages)})))
    run = guarded(model, {"fuses": {"max_steps": 3}}, [tool])
    assert (await run.drive()).status is Status.TRIPPED
    assert len(tool.ran) == 6


# --- the same verdicts afterwards ------------------------------------------------------------------------------------


def replayed(run: MemoryRun) -> dict[str, Any]:
    events = [orjson.loads(body) for body in run.log.bodies]
    row = sequence_of(run.spec.id, events, lambda reference: run.log.contents.get(reference["sha256"]))
    return judge_sequence(json.loads(json.dumps(row)), policy_from(run.spec.policy_body, run.spec.policy))


def live(run: MemoryRun) -> list[dict[str, Any]]:
    """The verdicts of the log in the form of `judge`, in the order of the calls they are on."""
    numbers: dict[str | None, int] = {}
    found = []
    for event in (decode(body) for body in run.log.bodies):
        data = event.data
        if event.kind == "call.completed" and data.operation == "chat" and event.turn is not None:
            for one in data.tool_calls or ():
                numbers[one["call"]] = len(numbers) + 1
        elif event.kind in ("steer.injected", "context.compressed"):
            numbers[f"pseudo {event.seq}"] = len(numbers) + 1
        elif event.kind == "verdict.issued":
            shown = {"call": numbers[event.call], "rung": data.rung}
            shown |= {"mode": data.mode} if data.mode else {}
            shown |= {"rule": data.rule, "fingerprint": data.fingerprint, "count": data.count}
            shown |= {"explanation": data.explanation} | ({"shadow": True} if data.shadow else {})
            found.append(shown)
    return found


@pytest.mark.parametrize("policy", ["strict", "ladder", "default"])
async def test_judging_the_exported_run_gives_the_live_verdicts_byte_for_byte(policy: str) -> None:
    seen = [0]

    async def look(args: Mapping[str, Any], context: ToolContext) -> str:
        seen[0] += 1
        return f"a longer text that stays the same for quite a while: {seen[0] // 6} " + "and so on " * 12

    tools = [failing(), FunctionTool("read_file", look), echo()]

    def script(messages: Any) -> Any:
        turn = sum(m["role"] == "assistant" for m in messages)
        if turn % 4 == 3:
            return asks(("get_invoice", {"invoice_id": 100, "note": "now" * turn}), ("echo", {"say": turn}))
        return asks(("read_file", {"path": "a.txt"})) if turn % 4 else asks(("get_invoice", {"invoice_id": "100"}))

    run = guarded(ScriptedModel(script), policy, tools)
    await run.drive()
    told = live(run)
    assert told
    assert json.dumps(replayed(run)["verdicts"]) == json.dumps(told)


# --- nothing swallows it ---------------------------------------------------------------------------------------------


def swallowed(tree: ast.AST) -> bool:
    """Whether a handler catches an incident without raising it again, here or in an earlier handler of its `try`."""
    for node in ast.walk(tree):
        passed = False
        for handler in node.handlers if isinstance(node, ast.Try) else ():
            caught = (
                {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)} if handler.type else {"BaseException"}
            )
            raises = any(isinstance(n, ast.Raise) for n in ast.walk(handler))
            if caught & {"LoopIncident", "BaseException"} and not raises and not passed:
                return True
            passed = passed or ("LoopIncident" in caught and raises)
    return False


def test_only_the_loop_catches_an_incident_and_nobody_catches_everything() -> None:
    root = Path(__file__).parents[3] / "agents"
    places = {
        path.relative_to(root).as_posix() for path in root.rglob("*.py") if swallowed(ast.parse(path.read_text()))
    }
    # A thread hands on what its work raised, and the connection to a server of tools is a task of its own.
    assert places == {"engine/loop.py", "engine/threads.py", "tools/mcp/connection.py"}


async def test_an_incident_that_is_raised_inside_a_tool_ends_the_run() -> None:
    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        raise LoopIncident(Trip(fuse="max_cost", explanation="spent").verdict(1), fuse=True)

    run = guarded(insisting("calm"), "off", [FunctionTool("calm", work)])
    assert (await run.drive()).status is Status.TRIPPED
    assert run.log.events[-1].data.fuse == "max_cost"


async def test_a_tool_that_swallows_every_exception_cannot_keep_a_tripped_run_going() -> None:
    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        try:
            raise ValueError("no")
        except Exception:
            return "fine"

    run = guarded(insisting("calm"), "strict", [FunctionTool("calm", work)])
    assert (await run.drive()).status is Status.TRIPPED
