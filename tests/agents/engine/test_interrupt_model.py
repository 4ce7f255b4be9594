"""An interrupt ends whatever a run is doing with its models: within 200 ms, socket closed, nothing asked afterwards."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from agents.engine.local import SystemClock
from agents.errors import ModelError, WireEvidence
from agents.policy import summaries
from agents.policy.limits import limits_from
from agents.ports import KeyReport
from agents.providers import connect
from agents.spec import ModelSpec, Status
from agents.testing import MemoryModels, MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, echo, interrupt
from tests.scripted_server import ScriptedServer, ask_tools, chunk, say, stall, status, stream

QUICK_S = 0.2


def over(server: ScriptedServer, **changes: Any) -> MemoryRun:
    model = connect(ModelSpec(model="m", base_url=server.base_url), "sk-a")
    return memory_run(model, clock=SystemClock(), tools=[echo()], **changes)


async def stopped_quickly(run: MemoryRun, driving: "asyncio.Task[Any]") -> None:
    pressed = time.monotonic()
    run.inbox.send(interrupt(run.spec.id))
    ended = await asyncio.wait_for(driving, 2)
    assert time.monotonic() - pressed < QUICK_S
    assert ended.status is Status.INTERRUPTED
    assert ended.stopped["verified"]
    assert not run.running.transcript.open_chats
    assert [e.kind for e in run.log.events].count("run.interrupted") == 1


@pytest.mark.parametrize(
    "failure", [status(500), status(429, retry_after=60), status(529, "Overloaded")], ids=["500", "429", "529"]
)
async def test_during_a_back_off(failure: Any) -> None:
    async with ScriptedServer([failure, say("never")]) as server:
        run = over(server)
        driving = asyncio.create_task(run.drive())
        await run.log.until("call.retried")
        await stopped_quickly(run, driving)
        assert len(server.requests) == 1


async def test_during_a_cooldown() -> None:
    clock = SystemClock()
    pool = MemoryModels({"a": ScriptedModel(["never"])}, clock=clock)
    await pool.report(KeyReport(credential="a", reason="rate_limit", cooldown_s=60))
    run = memory_run(pool, clock=clock)
    driving = asyncio.create_task(run.drive())
    retried = await run.log.until("call.retried")
    assert retried.data.action == "cooldown"
    await stopped_quickly(run, driving)


async def test_during_a_rotation_and_a_fall_back() -> None:
    clock = SystemClock()
    limited = ModelError("rate_limit", "slow", WireEvidence(status=429))
    for places in (
        [{"a": ScriptedModel([limited]), "b": ScriptedModel(["never"])}],
        [{"a": ScriptedModel([ModelError("permission", "no")])}, {"b": ScriptedModel(["never"])}],
    ):
        pool = MemoryModels(*places, clock=clock)
        run = memory_run(pool, clock=clock, spec=memory_spec(model=pool.specs[0], fallbacks=pool.specs[1:]))
        driving = asyncio.create_task(run.drive())
        await run.log.until("call.retried")
        await stopped_quickly(run, driving)


async def test_during_a_connect() -> None:
    # A full backlog: the connection is neither accepted nor refused.
    accepting = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepting.set()
        await asyncio.sleep(30)

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    model = connect(ModelSpec(model="m", base_url=f"https://127.0.0.1:{port}/v1"), None)
    run = memory_run(model, clock=SystemClock())
    driving = asyncio.create_task(run.drive())
    await accepting.wait()  # it speaks TLS to somebody who never answers
    await stopped_quickly(run, driving)
    server.close()


async def test_during_a_silent_stream() -> None:
    async with ScriptedServer([stream(chunk({"role": "assistant"}), stall())]) as server:
        run = over(server)
        driving = asyncio.create_task(run.drive())
        seen = await server.request(0)
        await stopped_quickly(run, driving)
        await asyncio.wait_for(seen.closed.wait(), 1)
        assert seen.how == "client_gone"
    assert run.log.of("call.completed")[0].status == "stopped"


@pytest.mark.case("A7-04")
async def test_what_an_interrupted_stream_had_cost_is_told() -> None:
    words = stream(*[chunk({"content": f"word{n} "}) for n in range(800)], stall())
    async with ScriptedServer([words]) as server:
        model = ModelSpec(model="bench", base_url=server.base_url)
        run = memory_run(connect(model, "sk-a"), clock=SystemClock(), spec=memory_spec(model=model))
        driving = asyncio.create_task(run.drive())
        while sum(map(len, run.live.texts.values())) < 800 * 6:
            await asyncio.sleep(0.005)
        await stopped_quickly(run, driving)
    told = run.log.of("call.completed")[0]
    assert told.cost_source == "estimated" and told.usage["output"] > 400 and float(told.cost_usd) > 0


async def test_during_a_compression_call() -> None:
    def script(body: Any) -> Any:
        messages = body["messages"]
        if messages[0]["content"].startswith(summaries.SYSTEM[:40]):
            return say("Done: nothing yet", after=[stall()])
        return ask_tools(("prints", {}), used={"prompt_tokens": len(str(messages)) // 4, "completion_tokens": 5})

    async def work(args: Any, context: Any) -> str:
        return "line of output\n" * 150

    async with ScriptedServer(script) as server:
        model = ModelSpec(model="m", base_url=server.base_url, window=4096)
        spec = memory_spec(model=model)
        run = memory_run(connect(model, "sk-a"), clock=SystemClock(), tools=[FunctionTool("prints", work)], spec=spec)
        driving = asyncio.create_task(run.drive())
        await run.log.until("call.started", lambda started: started.name == "compression")
        while not any(text.startswith("Done:") for text in run.live.texts.values()):
            await asyncio.sleep(0.002)
        asked = len(server.requests)
        await stopped_quickly(run, driving)
        await asyncio.wait_for(server.requests[-1].closed.wait(), 1)
        assert len(server.requests) == asked
    assert "context.compressed" not in run.log.kinds()
    assert run.log.of("call.completed")[-1].name == "compression"
    assert run.log.of("call.completed")[-1].status == "stopped"


async def test_during_the_closing_summary() -> None:
    async with ScriptedServer([ask_tools(("echo", {})), say("What was done:", after=[stall()])]) as server:
        run = over(server, limits=limits_from({"max_turns": 1}, "request"))
        driving = asyncio.create_task(run.drive())
        await run.log.until("call.started", lambda started: started.name == "summary")
        seen = await server.request(1)
        await stopped_quickly(run, driving)
        await asyncio.wait_for(seen.closed.wait(), 1)


async def test_during_a_pick_and_a_report_that_hang() -> None:
    class Stuck(MemoryModels):
        hangs = "pick"

        async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Any:
            if self.hangs == "pick":
                asked.set()
                await asyncio.sleep(60)
            return await super().pick(place, avoid)

        async def report(self, report: KeyReport) -> None:
            if self.hangs == "report":
                asked.set()
                await asyncio.sleep(60)

    for hangs in ("pick", "report"):
        asked = asyncio.Event()
        clock = SystemClock()
        scripts: Sequence[Any] = [ModelError("auth", "wrong key", WireEvidence(status=401)), asks(("echo", {}))]
        pool = Stuck({"a": ScriptedModel(scripts)}, clock=clock)
        pool.hangs = hangs
        run = memory_run(pool, clock=clock)
        driving = asyncio.create_task(run.drive())
        await asked.wait()
        await stopped_quickly(run, driving)
