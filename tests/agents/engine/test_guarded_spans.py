"""A loop that goes on through a compression, a pause and a change of worker is the same loop."""

from collections.abc import Mapping
from typing import Any

from agents.commands import CommandKind
from agents.policy import summaries
from agents.policy.policies import shipped
from agents.ports import ToolContext, ToolOutput
from agents.spec import ConcurrencyClass, ModelSpec, Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command

SUMMARY = "Done: the chapters so far were read. Found: nothing yet. Next: the invoice. " * 4


def failing() -> FunctionTool:
    async def work(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text="Error: connection to billing timed out", is_error=True)

    return FunctionTool("get_invoice", work, concurrency=ConcurrencyClass.UNKNOWN)


def chapters() -> FunctionTool:
    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        return "\n".join(
            f"chapter {args['n']}, sentence {n} tells of the number {n * args['n'] + 7}." for n in range(90)
        )

    return FunctionTool("read_chapter", work)


def guarded(model: Any, tools: Any, *, window: int | None = None, **more: Any) -> MemoryRun:
    spec = memory_spec(
        policy="default",
        policy_body=shipped("default"),
        model=ModelSpec(model="scripted", base_url="http://127.0.0.1:9/v1", window=window),
    )
    return memory_run(model, tools=tools, spec=spec, **more)


def executions(run: MemoryRun, name: str) -> int:
    return sum(1 for c in run.log.of("call.started") if c.operation == "execute_tool" and c.name == name)


async def test_a_loop_across_a_compression_is_caught() -> None:
    asked = [0]

    def script(messages: Any) -> Any:
        if messages[0]["content"].startswith(summaries.SYSTEM[:40]):
            return SUMMARY
        asked[0] += 1
        if asked[0] % 4 == 1:
            return asks(("get_invoice", {"invoice_id": 100}))
        return asks(("read_chapter", {"n": asked[0]}))

    run = guarded(ScriptedModel(script), [failing(), chapters()], window=6_000)
    ended = await run.drive()
    assert run.log.of("context.compressed")
    assert ended.status is Status.TRIPPED
    # Once more than in a row: a look that failed may be tried again when something else was learnt meanwhile.
    assert executions(run, "get_invoice") == 3


async def test_a_loop_across_pauses_is_caught() -> None:
    class Pausing(ScriptedModel):
        async def ask(self, request: Any, on_text: Any) -> Any:
            if len(self.requests) in (1, 3):
                run.inbox.send(command(CommandKind.PAUSE, run.spec.id, when="after_batch"))
                await run.log.until("command.received", lambda c: len(run.log.of("command.received")) % 2 == 1)
            return await super().ask(request, on_text)

    run = guarded(Pausing(lambda _: asks(("get_invoice", {"invoice_id": 100}))), [failing()])

    def let_go(event: Any) -> None:
        if event.kind == "run.waiting":
            run.inbox.send(command(CommandKind.UNPAUSE, run.spec.id))

    run.log.on_event = let_go
    ended = await run.drive()
    assert len(run.log.of("run.continued")) == 2
    assert (ended.status, executions(run, "get_invoice")) == (Status.TRIPPED, 2)


async def test_a_loop_that_goes_on_in_another_worker_is_caught_with_its_whole_history() -> None:
    first = guarded(ScriptedModel(lambda _: asks(("get_invoice", {"invoice_id": 100}))), [failing()])
    await first.drive()
    second_answer = [n for n, e in enumerate(first.log.events) if e.kind == "turn.completed"][1] + 1
    log = type(first.log)(first.spec.id)
    log.events[:], log.bodies[:] = first.log.events[:second_answer], first.log.bodies[:second_answer]
    # Another spelling of the same call, in another process.
    again = ScriptedModel(lambda _: asks(("get_invoice", {"invoice_id": "100", "trace_id": "b"})))
    tool = failing()
    resumed = memory_run(again, tools=[tool], spec=first.spec, log=log, epoch=2)
    assert (await resumed.drive()).status is Status.TRIPPED
    assert tool.ran == []
    assert len(resumed.log.of("verdict.issued")) >= 4
