"""What goes to the model after notes, stops, crashes and failures: always a history that strict providers accept."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agents.engine.transcript import Transcript
from agents.errors import ModelError
from agents.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agents.policy.repair import Kind, repair
from agents.spec import ConcurrencyClass, Resume, Status
from agents.testing import MemoryLog, MemoryRun, ScriptedModel, asks, memory_run
from tests.agents.engine.doubles import FunctionTool, echo, gate, interrupt, steer
from tests.agents.policy.histories import complaint


def fold(log: MemoryLog, upto: int | None = None) -> list[Message]:
    transcript = Transcript()
    for event in log.events[:upto]:
        transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at)
    return transcript.messages


def left_by_a_crash(run: MemoryRun, upto: int) -> MemoryLog:
    log = MemoryLog(run.spec.id)
    log.events, log.bodies = run.log.events[:upto], run.log.bodies[:upto]
    return log


def checked(answers: Sequence[Any], seen: Callable[[], Sequence[Message]]) -> ScriptedModel:
    """A model that refuses, as strict providers do, a history that is not in order; its answers go by turn."""

    def answer(messages: Sequence[Any]) -> Any:
        if wrong := complaint(seen()):
            raise AssertionError(wrong)
        return answers[sum(m["role"] == "assistant" for m in messages)]

    return ScriptedModel(answer)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


THREE = asks(("one", {}), ("gate", {}), ("three", {}))


@pytest.mark.case("A3-01")
async def test_calls_of_a_dead_worker_each_have_one_result_in_the_next_request() -> None:
    stuck, entered, _ = gate(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    tools = [echo("one"), stuck, echo("three")]
    first = memory_run(ScriptedModel([THREE]), tools=tools)
    driving = asyncio.create_task(first.drive())
    await entered.wait()
    log = left_by_a_crash(first, len(first.log.events))
    driving.cancel()
    held: list[MemoryRun] = []
    model = checked([THREE, "done"], lambda: held[0].running.transcript.messages)
    held.append(memory_run(model, tools=tools, log=log, spec=first.spec, epoch=2))
    assert (await held[0].drive()).status is Status.COMPLETED
    results = [m["content"] for m in model.requests[0] if m["role"] == "tool"]
    assert [results[0], results[2]] == ["echo ", "echo "]
    assert "unknown" in results[1]
    by_name = {c.name: c.status for c in log.of("call.completed") if c.operation == "execute_tool"}
    assert by_name == {"one": "ok", "gate": "effect_unknown", "three": "ok"}


@pytest.mark.case("A3-01")
async def test_an_interrupted_batch_is_answered_truthfully_and_the_history_can_go_on() -> None:
    stuck, entered, _ = gate(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([THREE]), tools=[echo("one"), stuck, echo("three")])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.inbox.send(interrupt(run.spec.id))
    assert (await driving).status is Status.INTERRUPTED
    history = [*fold(run.log), UserMessage(text="go on with b")]
    assert complaint(history) is None
    assert repair(history)[1] == []
    by_name = {c.name: c.status for c in run.log.of("call.completed") if c.operation == "execute_tool"}
    assert by_name == {"one": "ok", "gate": "stopped", "three": "not_started"}


@pytest.mark.case("A3-01")
async def test_a_log_that_ends_anywhere_is_repaired_into_a_history_to_go_on_from() -> None:
    run = memory_run(ScriptedModel([THREE, "done"]), tools=[echo("one"), echo("gate"), echo("three")])
    await run.drive()
    for upto in range(1, len(run.log.events) + 1):
        history = [*fold(run.log, upto), UserMessage(text="go on")]
        fixed, changes = repair(history)
        assert complaint(fixed) is None
        assert {change.kind for change in changes} <= {Kind.RESULT_MISSING, Kind.MERGED}


async def test_a_run_that_dies_after_any_event_sends_only_histories_in_order() -> None:
    tools = [echo("one"), echo("gate", concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN), echo("three")]
    whole = memory_run(ScriptedModel([THREE, asks(("one", {})), "done"]), tools=tools)
    whole.inbox.send(steer(whole.spec.id, "gently"))
    await whole.drive()
    for upto in range(1, len(whole.log.events)):
        log = left_by_a_crash(whole, upto)
        held: list[MemoryRun] = []
        model = checked([THREE, asks(("one", {})), "done"], lambda held=held: held[0].running.transcript.messages)
        held.append(memory_run(model, tools=tools, log=log, spec=whole.spec, epoch=2))
        assert (await held[0].drive()).status is Status.COMPLETED, upto


@pytest.mark.case("A3-02")
@pytest.mark.parametrize("moment", ["model streaming", "both running", "one of two done", "both done"])
async def test_a_note_lands_behind_the_whole_result_block_whenever_it_comes(moment: str) -> None:
    first, first_entered, first_release = gate("first")
    second, second_entered, second_release = gate("second")
    two = asks(("first", {}), ("second", {}))
    asking, answer = asyncio.Event(), asyncio.Event()

    async def streaming() -> AssistantMessage:
        asking.set()
        await answer.wait()
        return two

    held: list[MemoryRun] = []
    plain = checked([two, "done"], lambda: held[0].running.transcript.messages)

    def script(messages: Sequence[Any]) -> Any:
        return streaming() if not any(m["role"] == "assistant" for m in messages) else plain._script(messages)

    model = ScriptedModel(script)
    run = memory_run(model, tools=[first, second])
    held.append(run)
    driving = asyncio.create_task(run.drive())

    async def send() -> None:
        run.inbox.send(steer(run.spec.id, "use python"))
        await run.log.until("command.received")

    await asking.wait()
    if moment == "model streaming":
        await send()
    answer.set()
    await first_entered.wait()
    await second_entered.wait()
    if moment == "both running":
        await send()
    first_release.set()
    await run.log.until("call.completed", lambda completed: completed.name == "first")
    if moment == "one of two done":
        await send()
    second_release.set()
    if moment == "both done":
        run.inbox.send(steer(run.spec.id, "use python"))
    assert (await driving).status is Status.COMPLETED
    everything = "\n".join(str(m["content"]) for m in model.requests[-1])
    assert everything.count("[User note: use python]") == 1
    assert model.requests[-1][-1]["content"].endswith("[User note: use python]")


@pytest.mark.case("A3-04")
async def test_two_notes_of_one_text_are_two_notes_and_a_retried_call_carries_each_once() -> None:
    tool, entered, release = gate()
    failed = ModelError("server_error", "broken")
    model = ScriptedModel([asks(("gate", {})), failed, "done"])
    run = memory_run(model, tools=[tool])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    for note in (steer(run.spec.id, "again"), steer(run.spec.id, "again")):
        run.inbox.send(note)
        await run.log.until("command.received", lambda received, note=note: received.command == note.id)
    release.set()
    await driving
    assert [str(request).count("[User note: again]") for request in model.requests] == [0, 2, 2]
    assert model.requests[1] == model.requests[2]
    assert len({e.command for e in run.log.of("steer.injected")}) == 2


@pytest.mark.case("A3-06")
async def test_an_answer_cut_before_or_after_its_first_words_leaves_nothing_in_the_history() -> None:
    asked = asyncio.Event()

    async def never() -> str:
        asked.set()
        return str(await asyncio.Future())

    run = memory_run(ScriptedModel(lambda messages: never()))
    driving = asyncio.create_task(run.drive())
    await asked.wait()
    run.inbox.send(interrupt(run.spec.id))
    await driving
    assert texts(fold(run.log)) == ["do it"]
    assert run.log.of("call.completed")[0].status == "stopped"


@pytest.mark.case("A3-06")
async def test_a_tool_without_output_says_so() -> None:
    async def silent(args: Any, context: Any) -> str:
        return ""

    model = ScriptedModel([asks(("silent", {})), "done"])
    run = memory_run(model, tools=[FunctionTool("silent", silent)])
    await run.drive()
    assert model.requests[1][-1]["content"] == "(no output)"
    assert [m.text for m in fold(run.log) if isinstance(m, ToolMessage)] == ["(no output)"]
