"""A run whose keys all rest, or whose money is gone, waits in sight, goes on by itself or by an operator, and parks."""

import asyncio
import time
from typing import Any

import pytest

from agents.commands import CommandKind
from agents.engine.local import SystemClock
from agents.errors import ModelError, WireEvidence
from agents.policy.limits import limits_from
from agents.ports import KeyReport
from agents.spec import ModelSpec, Status
from agents.testing import FakeClock, MemoryModels, MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import command, echo, interrupt, steer

DAILY = ModelError("rate_limit", "daily limit reached", WireEvidence(status=429, headers={"retry-after": "18000"}))
NO_MONEY = ModelError("billing", "Insufficient credits", WireEvidence(status=402))


def waiting(*scripts: Any, clock: Any = None, policy: Any = None, **changes: Any) -> MemoryRun:
    """A run over one model with a key for each script."""
    clock = clock or FakeClock()
    models = {chr(ord("a") + n): ScriptedModel(script) for n, script in enumerate(scripts)}
    pool = MemoryModels(models, clock=clock, specs=[ModelSpec(model="scripted", base_url="http://127.0.0.1:9/v1")])
    return memory_run(pool, clock=clock, spec=memory_spec(policy_body=policy or {}), tools=[echo()], **changes)


@pytest.mark.case("A7-13")
async def test_a_daily_limit_waits_until_the_named_time_and_goes_on_by_itself() -> None:
    run = waiting([asks(("echo", {})), DAILY, "Done."], park_after_s=0)
    ended = await run.drive()
    assert ended.final == "Done."
    assert run.log.kinds() == [
        "run.queued", "run.started", "turn.started", "call.started", "call.completed", "batch.planned",
        "call.started", "call.completed", "turn.completed", "turn.started", "call.started", "credential.rotated",
        "call.completed", "run.waiting", "run.continued", "call.started", "call.completed", "turn.completed",
        "run.completed",
    ]  # fmt: skip
    waited = run.log.of("run.waiting")[0]
    assert waited.reason == "quota" and waited.until.startswith("2026-01-01T05:00:0")
    assert "daily limit reached" in waited.text
    assert len(run.clock.sleeps) == 1 and 18_000 <= run.clock.sleeps[0] < 18_002
    assert run.log.of("credential.rotated")[0].to is None
    assert run.log.of("call.completed")[2].status == "error"


async def test_money_that_is_gone_is_waited_for_without_an_end_until_an_operator_lets_the_run_go_on() -> None:
    run = waiting([NO_MONEY, "Almost.", "Done."], park_after_s=0)
    driving = asyncio.create_task(run.drive())
    waited = await run.log.until("run.waiting")
    assert waited.data.until is None and "Insufficient credits" in waited.data.text
    # What the provider said goes with the key, for whoever looks after it.
    assert "Insufficient credits" in run.models.reports[-1].said
    run.inbox.send(steer(run.spec.id, "use less"))
    await run.log.until("command.received")
    run.models.revive("a")
    run.inbox.send(command(CommandKind.UNPAUSE, run.spec.id))
    ended = await driving
    assert ended.final == "Done."
    assert run.clock.sleeps == []


async def test_a_run_whose_policy_says_so_fails_instead() -> None:
    run = waiting([DAILY], policy={"on_quota": "fail"})
    ended = await run.drive()
    assert ended.status is Status.FAILED
    assert run.log.events[-1].data.error["reason"] == "rate_limit"
    assert "run.waiting" not in run.log.kinds()


async def test_a_long_wait_parks_and_a_resumed_run_asks_again_in_the_same_turn() -> None:
    run = waiting([asks(("echo", {})), DAILY], park_after_s=600)
    ended = await run.drive()
    assert ended.how == "parked"
    assert run.log.kinds()[-1] == "run.waiting"
    assert run.clock.sleeps == [600]
    again = memory_run(ScriptedModel(["Done."]), tools=[echo()], log=run.log, spec=run.spec, epoch=2)
    ended = await again.drive()
    assert ended.final == "Done."
    assert [e.turn for e in run.log.events if e.kind == "turn.started"] == [1, 2]
    assert not run.running.transcript.open_chats


async def test_keys_that_rest_for_a_moment_are_waited_for_within_the_call() -> None:
    limited = ModelError("rate_limit", "slow", WireEvidence(status=429, headers={"retry-after": "20"}))
    run = waiting([limited, "Done."], [limited, "Done."])
    ended = await run.drive()
    assert ended.final == "Done."
    assert [r.action for r in run.log.of("call.retried")] == ["rotate", "retry"]
    assert 20 <= sum(run.clock.sleeps) <= 23


async def test_all_keys_at_rest_before_the_first_question_is_a_cooldown_that_is_told() -> None:
    clock = FakeClock()
    run = waiting(["Done."], clock=clock)
    await run.models.report(KeyReport(credential="a", reason="rate_limit", cooldown_s=40))
    ended = await run.drive()
    assert ended.final == "Done."
    retried = run.log.of("call.retried")[0]
    assert (retried.action, retried.attempt) == ("cooldown", 0)
    assert 40 <= retried.wait_s <= 41 and run.clock.sleeps == [retried.wait_s]


async def test_a_spent_time_limit_ends_a_run_that_had_waited_for_quota() -> None:
    spec = memory_spec(limits=limits_from({"max_seconds": 3600}, "request"))
    clock = FakeClock()
    models = MemoryModels({"a": ScriptedModel([DAILY, "Done."])}, clock=clock)
    run = memory_run(models, clock=clock, spec=spec, park_after_s=0)
    ended = await run.drive()
    assert ended.status is Status.TRIPPED
    assert run.log.events[-1].data.fuse == "max_seconds"


@pytest.mark.parametrize("error", [DAILY, NO_MONEY], ids=["until a time", "without an end"])
async def test_an_interrupt_ends_a_wait_for_quota_at_once(error: ModelError) -> None:
    run = waiting([error], clock=SystemClock())
    driving = asyncio.create_task(run.drive())
    await run.log.until("run.waiting")
    pressed = time.monotonic()
    run.inbox.send(interrupt(run.spec.id))
    ended = await driving
    assert time.monotonic() - pressed < 0.2
    assert ended.status is Status.INTERRUPTED


@pytest.mark.parametrize(("rest", "waits"), [("30", False), ("3600", True)])
async def test_a_dead_key_ends_no_run_while_another_is_only_at_rest(rest: str, waits: bool) -> None:
    limit = ModelError("rate_limit", "slow down", WireEvidence(status=429, headers={"retry-after": rest}))
    revoked = ModelError("auth", "this key was revoked", WireEvidence(status=401))
    run = waiting([limit, "Done."], [revoked], park_after_s=0)
    ended = await run.drive()
    assert ended.final == "Done."
    assert bool(run.log.of("run.waiting")) is waits
    assert sum(run.clock.sleeps) == pytest.approx(float(rest), abs=3)
    # The dead key is not told to come back.
    assert [one.cooldown_s for one in run.log.of("credential.rotated") if one.from_ == "b"] == [None]


async def test_keys_that_are_all_dead_fail_the_run_at_once() -> None:
    revoked = ModelError("auth", "this key was revoked", WireEvidence(status=401))
    run = waiting([revoked], [revoked], park_after_s=0)
    ended = await run.drive()
    assert ended.status is Status.FAILED and "revoked" in ended.final
    assert sum(run.clock.sleeps) < 1
