"""Runs under the guard at the seams: a death between verdict and end, a fuse behind another verdict, looking on."""

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents import kinds
from agents.commands import CommandKind
from agents.errors import ConfigError
from agents.lines import policy_named
from agents.policy.limits import limits_from, of_policy
from agents.policy.policies import policy_from, shipped
from agents.policy.recorded import judged_line
from agents.ports import Edit, ToolContext, ToolOutput
from agents.spec import ConcurrencyClass, ModelSpec, Status
from agents.testing import FakeClock, MemoryModels, MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command, echo
from tests.agents.engine.test_guarded_runs import live, replayed


def run_of(model: Any, body: Mapping[str, Any], tools: Any, **frozen: Any) -> MemoryRun:
    spec = memory_spec(policy="own", policy_body=body, **frozen)
    return memory_run(model, tools=tools, spec=spec)


def cut_behind(run: MemoryRun, model: Any, tools: Any, last: int) -> MemoryRun:
    """The same run in another worker, with the log up to its event number `last`."""
    log = type(run.log)(run.spec.id)
    log.events[:], log.bodies[:] = run.log.events[:last], run.log.bodies[:last]
    return memory_run(model, tools=tools, spec=run.spec, log=log, epoch=2)


def failing() -> FunctionTool:
    async def work(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text="Error: connection to billing timed out", is_error=True)

    return FunctionTool("get_invoice", work, concurrency=ConcurrencyClass.UNKNOWN)


def insisting() -> ScriptedModel:
    return ScriptedModel(lambda _: asks(("get_invoice", {"invoice_id": 100}), ("echo", {"say": "more"})))


@pytest.mark.parametrize("policy", ["strict", "ladder", "default"])
async def test_a_worker_that_dies_anywhere_behind_the_last_verdict_leaves_a_run_that_trips(policy: str) -> None:
    first = run_of(insisting(), {**shipped(policy), "last_word": True}, [failing(), echo()])
    assert (await first.drive()).status is Status.TRIPPED
    stop = next(e for e in first.log.events if isinstance(e.data, kinds.VerdictIssued) and e.data.rung == "stop")
    stops = len([v for v in first.log.of("verdict.issued") if v.rung == "stop"])
    end: Any = first.log.events[-1].data
    for last in range(stop.seq, len(first.log.events)):
        tools = [failing(), echo()]
        again = cut_behind(first, ScriptedModel(lambda _: "My last word."), tools, last)
        assert (await again.drive()).status is Status.TRIPPED, last
        told: Any = again.log.events[-1].data
        assert (told.rule, told.fuse, told.verdict["fingerprint"]) == (end.rule, end.fuse, end.verdict["fingerprint"])
        assert tools[0].ran == tools[1].ran == []
        assert len([v for v in again.log.of("verdict.issued") if v.rung == "stop"]) == stops


async def test_a_fuse_trips_on_what_a_call_did_although_the_call_had_another_verdict() -> None:
    contents = iter("ABABABABABAB")

    async def work(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        now = next(contents)
        edit = Edit(path="sum.py", before_sha256=None, sha256=now * 64, size=1, state=now, content=now.encode())
        return ToolOutput(text=f"written {now}", edits=(edit,))

    body = {"fuses": {"max_oscillations": 2}, "ladder": {"observe": 1}}
    tool = FunctionTool("edit_file", work)
    run = run_of(
        ScriptedModel(lambda m: asks(("edit_file", {"n": 1}))),
        body,
        [tool],
        limits=limits_from({"max_turns": 9}, "request"),
    )
    ended = await run.drive()
    assert (ended.status, len(tool.ran)) == (Status.TRIPPED, 5)
    end: Any = run.log.events[-1].data
    assert end.fuse == "max_oscillations"
    again = cut_behind(run, ScriptedModel(["done"]), [tool], len(run.log.events) - 1)
    assert (await again.drive()).status is Status.TRIPPED
    assert len([v for v in again.log.of("verdict.issued") if v.rung == "stop"]) == 1


async def test_a_policy_that_only_looks_on_escalates_nothing() -> None:
    asked: list[str] = []

    def named(name: str) -> ScriptedModel:
        def script(_: Any) -> Any:
            asked.append(name)
            return asks(("get_invoice", {"invoice_id": 100}))

        return ScriptedModel(script)

    clock = FakeClock()
    models = MemoryModels(
        {"a": named("weak")},
        {"b": named("strong")},
        clock=clock,
        specs=[ModelSpec(model=n, base_url="http://127.0.0.1:9/v1") for n in ("weak", "strong")],
    )
    body = {
        "shadow": True,
        "ladder": {"observe": 2, "block": 3, "escalate": 4, "stop": 6},
        "escalate": {"model": "strong"},
    }
    spec = memory_spec(
        policy="own",
        policy_body=body,
        model=models.specs[0],
        fallbacks=(models.specs[1],),
        limits=limits_from({"max_turns": 8}, "request"),
    )
    run = memory_run(models, tools=[failing()], spec=spec, clock=clock)
    assert (await run.drive()).status is Status.EXHAUSTED
    assert "escalate" in {v.rung for v in run.log.of("verdict.issued")}
    assert set(asked) == {"weak"}


async def test_a_raised_step_fuse_stays_raised_in_the_next_worker() -> None:
    def steps(messages: Any) -> Any:
        return asks(("echo", {"say": len(messages)}))

    run = run_of(ScriptedModel(steps), shipped("off"), [echo()], limits=limits_from({"max_steps": 3}, "request"))
    run.inbox.send(command(CommandKind.RAISE, run.spec.id, limits={"max_steps": "6"}))
    assert (await run.drive()).status is Status.TRIPPED
    fifth = [n for n, e in enumerate(run.log.events) if e.kind == "turn.completed"][4] + 1
    tool = echo()
    again = cut_behind(run, ScriptedModel(["done"]), [tool], fifth)
    assert (await again.drive()).status is Status.COMPLETED


async def test_a_fuse_of_the_request_holds_although_the_policy_only_looks_on() -> None:
    def steps(messages: Any) -> Any:
        return asks(("echo", {"say": len(messages)}))

    tool = echo()
    body = {**shipped("default"), "shadow": True}
    run = run_of(ScriptedModel(steps), body, [tool], limits=limits_from({"max_steps": 3, "max_turns": 8}, "request"))
    assert (await run.drive()).status is Status.TRIPPED
    assert len(tool.ran) == 3


def test_of_two_tables_of_a_policy_the_tighter_number_holds() -> None:
    body = {"fuses": {"max_steps": 5}, "stop_when": {"max_steps": 50}}
    assert policy_from(body, "x").fuses.max_steps == 5
    found = of_policy(body).max_steps
    assert found is not None and found.value == 5


@pytest.mark.parametrize("line", [b'{"id":NaN,"calls":[]}', b'{"id":1e999,"calls":[]}', b'{"id":[NaN],"calls":[]}'])
def test_an_answer_of_judge_is_json_whatever_the_id_is(line: bytes) -> None:
    text, sound = judged_line(1, line, policy_from(shipped("default"), "default"))
    assert sound and orjson.loads(text)["id"] is None


async def test_a_hint_is_given_once_wherever_the_worker_dies() -> None:
    def script(messages: Any) -> Any:
        return asks(("echo", {}), ("get_invoice", {})) if len(messages) < 8 else "done"

    body = {"ladder": {"observe": 2, "steer": 2}}
    run = run_of(ScriptedModel(script), body, [echo(), failing()])
    await run.drive()
    hints = len(run.log.of("hint.injected"))
    assert hints >= 2
    for last in range(3, len(run.log.events)):
        again = cut_behind(run, ScriptedModel(script), [echo(), failing()], last)
        assert (await again.drive()).status is Status.COMPLETED
        assert len(again.log.of("hint.injected")) == hints, last


async def test_a_policy_may_say_what_the_last_word_is_to_tell() -> None:
    def script(messages: Any) -> Any:
        last = messages[-1]["content"]
        return (
            "It times out."
            if "stopped by its guard" in last and last.endswith("Name the {cause}.")
            else asks(("get_invoice", {}))
        )

    run = run_of(ScriptedModel(script), {**shipped("default"), "last_word": "Name the {cause}."}, [failing()])
    ended = await run.drive()
    assert (ended.status, ended.final) == (Status.TRIPPED, "It times out.")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b'unpriced = "toks"', "unpriced"),
        (b"last_word = 4", "last_word"),
        (b"approvals = 5", "approvals"),
        (b"[fuses]\nmax_steps = 0x" + b"f" * 9000, "fuses.max_steps"),
        (b"[rules.pending]\nstop = 0x" + b"f" * 9000, "rules.pending.stop"),
    ],
)
def test_a_wrong_policy_file_is_told_with_the_place_that_is_wrong(text: bytes, named: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes(text)
    with pytest.raises(ConfigError, match=named):
        policy_named(str(file))


@pytest.mark.parametrize("policy", ["strict", "ladder", "default"])
async def test_nothing_is_judged_behind_the_verdict_that_ends_the_run(policy: str) -> None:
    def script(_: Any) -> Any:
        return asks(("get_invoice", {"invoice_id": 100}), ("nope", {}), ("get_invoice", "{bad json"))

    run = run_of(ScriptedModel(script), shipped(policy), [failing()])
    assert (await run.drive()).status is Status.TRIPPED
    rungs = [v.rung for v in run.log.of("verdict.issued")]
    assert rungs.count("stop") == 1 and rungs[-1] == "stop"
    # A call that was run to see what it answers is told of when it has answered, others of its batch before that.
    assert sorted(live(run), key=itemgetter("call")) == replayed(run)["verdicts"]
