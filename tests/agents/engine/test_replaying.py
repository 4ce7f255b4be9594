"""Recorded runs played again: under their own policy the same verdicts at the same steps, under a stricter one the
first step that comes otherwise is the one that the guard would have held."""

import hashlib
import random
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from agents import kinds
from agents.commands import CommandKind
from agents.engine.local import OneModel
from agents.engine.replaying import RecordedModels, Recording, recorded_tools
from agents.policy.divergence import Told, parts, same, told
from agents.policy.policies import policy_from, shipped
from agents.policy.recorded import judge_sequence
from agents.policy.sequences import sequence_of
from agents.ports import Edit, ToolContext, ToolOutput
from agents.spec import ConcurrencyClass, Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command
from tests.agents.engine.test_guarded_runs import guarded, insisting

POLICIES = ("default", "ladder", "strict", "off")


def tools(seed: int) -> list[FunctionTool]:
    """A read that changes now and then, a call that fails, a write that goes back and forth."""
    chance, written = random.Random(seed), [""]

    async def read(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text=f"{args['path']} says {chance.randrange(3)}\n" * 4)

    async def fail(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text=f"Error: {chance.choice(['timed out', 'no such invoice'])}", is_error=True)

    async def write(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        before, now = written[0], str(args["content"]).encode()
        written[0] = sha = hashlib.sha256(now).hexdigest()
        edit = Edit(path="a.py", before_sha256=before or None, sha256=sha, size=len(now), state="changed", content=now)
        return ToolOutput(text="written", edits=(edit,))

    return [
        FunctionTool("read_file", read, concurrency=ConcurrencyClass.SAFE),
        FunctionTool("get_invoice", fail, concurrency=ConcurrencyClass.UNKNOWN),
        FunctionTool("write_file", write, concurrency=ConcurrencyClass.UNKNOWN),
    ]


def wandering(seed: int) -> ScriptedModel:
    """A model that reads, fails and writes from a small choice, one to three calls a turn, for up to 24 turns."""
    chance = random.Random(1000 + seed)
    turns = chance.randrange(6, 24)
    given = 0

    def answer(_: Any) -> Any:
        nonlocal given
        given += 1
        if given > turns:
            return "Done."
        calls = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            calls.append(
                chance.choice(
                    (
                        ("read_file", {"path": f"m{chance.randrange(4)}.py"}),
                        ("get_invoice", {"invoice_id": chance.randrange(2)}),
                        ("write_file", {"content": chance.choice("AB")}),
                    )
                )
            )
        return asks(*calls, text=f"turn {given}")

    return ScriptedModel(answer)


def replayed(run: MemoryRun, policy: str, *, done: MemoryRun | None = None, from_turn: int = 0) -> MemoryRun:
    """The run that plays it, wired as a host wires it."""
    recording = Recording(run.log.events, from_turn=from_turn, done=done.log.events if done else ())
    schemas = run.log.contents[run.log.of("run.started")[0].tools["sha256"]]
    body = shipped(policy)
    spec = done.spec if done else memory_spec(policy=policy, policy_body=body, limits=_limits(policy))
    made = memory_run(
        OneModel(ScriptedModel([]), spec.model), spec=spec, log=done.log if done else None, epoch=2 if done else 1
    )
    ports = made.running._ports
    models = RecordedModels(recording, spec.model, made.inbox.send)
    registry = recorded_tools(recording, schemas, run.log.get)
    for one in recording.early:
        made.inbox.send(one)
    object.__setattr__(ports, "models", models)
    object.__setattr__(ports, "tools", registry)
    return made


def _limits(policy: str) -> Any:
    return guarded(ScriptedModel([]), policy, []).spec.limits


def story(run: MemoryRun) -> Told:
    return told(orjson.loads(body) for body in run.log.bodies)


def verdicts(run: MemoryRun) -> list[tuple[str, str, int, int]]:
    return [(one.rung, one.rule, one.step, one.count) for one in run.log.of("verdict.issued")]


async def recorded(seed: int, policy: str) -> MemoryRun:
    run = guarded(wandering(seed), policy, tools(seed))
    if seed % 5 == 0:  # somebody says a word on the way
        run.inbox.send(command(CommandKind.STEER, run.spec.id, note="Look at m2.py once more."))
    await run.drive()
    return run


@pytest.mark.parametrize("policy", POLICIES)
async def test_under_its_own_policy_a_replay_says_the_same_at_the_same_steps(policy: str) -> None:
    acted = 0
    for seed in range(50):
        run = await recorded(seed, policy)
        again = replayed(run, policy)
        await again.drive()
        assert verdicts(again) == verdicts(run), seed
        assert parts(story(run), story(again)) is None, seed
        assert story(again).end == story(run).end, seed
        acted += any(step.verdicts for step in story(run).steps)
    assert acted > 25 or policy == "off"


async def test_under_a_stricter_policy_the_first_step_that_differs_is_the_one_that_the_guard_holds() -> None:
    parted = 0
    for seed in range(50):
        run = await recorded(seed, "off")
        again = replayed(run, "strict")
        await again.drive()
        sequence = sequence_of("r", (orjson.loads(body) for body in run.log.bodies), _content_of(run))
        judged = judge_sequence(sequence, policy_from(shipped("strict"), "strict"))["verdicts"]
        found = parts(story(run), story(again))
        if not judged:
            assert found is None, seed
            continue
        # Notes stand between the calls of the sequence; steps count calls alone.
        at = judged[0]["call"]
        step = sum(not one["tool"].startswith("__") for one in sequence["calls"][:at])
        assert found is not None and found.step == step, seed
        assert same(story(run), story(again)) == step - 1
        assert story(again).end == "tripped"
        parted += 1
    assert parted > 40


def _content_of(run: MemoryRun) -> Any:
    return lambda reference: run.log.contents.get(reference["sha256"])


async def test_where_the_recording_breaks_off_the_replay_ends_and_is_no_different() -> None:
    run = guarded(insisting("read_file", {"path": "a"}), "strict", tools(1))
    await run.drive()
    again = replayed(run, "off")
    ended = await again.drive()
    assert ended.status is Status.FAILED
    found = parts(story(run), story(again))
    assert found is not None and (found.step, found.now and found.now.outcome) == (3, "not_started")
    assert "refused by max_identical_calls" in found.why
    (end,) = again.log.of("run.failed")
    assert end.error["reason"] == "recording_ended"


async def test_a_replay_goes_on_in_another_worker_where_the_first_one_died() -> None:
    run = await recorded(3, "default")
    first = replayed(run, "default")
    await first.drive()
    # Its log up to the middle, as a dead worker leaves it: an answer is written, its calls are not made.
    cut = next(
        n for n, event in enumerate(first.log.events, 1)
        if isinstance(event.data, kinds.CallCompleted) and event.data.operation == "chat" and n > 20
    )  # fmt: skip
    first.log.events[cut:], first.log.bodies[cut:] = [], []
    second = replayed(run, "default", done=first)
    await second.drive()
    assert parts(story(run), story(second)) is None
    assert story(second).end == story(run).end


async def test_what_was_paid_before_is_told_and_the_money_fuse_holds_by_it() -> None:
    run = await recorded(4, "off")
    again = replayed(run, "off")
    await again.drive()
    asked = [one.cost_usd for one in run.log.of("call.completed") if one.operation == "chat"]
    assert [one.cost_usd for one in again.log.of("call.completed") if one.operation == "chat"] == asked
