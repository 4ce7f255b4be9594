"""A model that says the same again and again: cut off early, asked once more, then the run is stopped."""

from typing import Any

import pytest

from agents.engine.local import SystemClock
from agents.policy.policies import shipped
from agents.providers import connect
from agents.spec import ModelSpec, Status
from agents.testing import FakeClock, MemoryRun, memory_run, memory_spec
from tests.agents.engine.doubles import echo
from tests.scripted_server import ScriptedServer, ask_tools, chunk, say, stream

PIECES = 6_000


def over(server: ScriptedServer, policy: str = "default") -> MemoryRun:
    spec = memory_spec(policy=policy, policy_body=shipped(policy), model=ModelSpec(model="m", base_url=server.base_url))
    return memory_run(connect(spec.model, "sk-test"), tools=[echo()], clock=FakeClock(), spec=spec)


def in_text() -> Any:
    return stream(chunk({"content": "Done. "}), *[chunk({"content": "court "}) for _ in range(PIECES)], "[DONE]")


def in_thinking() -> Any:
    return stream(*[chunk({"reasoning_content": "court "}) for _ in range(PIECES)], "[DONE]")


def in_arguments() -> Any:
    first = chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "echo", "arguments": '{"say": "'}}]})
    more = [chunk({"tool_calls": [{"index": 0, "function": {"arguments": "court "}}]}) for _ in range(PIECES)]
    return stream(first, *more, "[DONE]")


@pytest.mark.case("A8-11")
@pytest.mark.parametrize("chanting", [in_text, in_thinking, in_arguments])
async def test_a_chant_is_cut_off_priced_and_asked_again_and_stays_out_of_the_history(chanting: Any) -> None:
    async with ScriptedServer([chanting(), say("All done.")]) as server:
        run = over(server)
        ended = await run.drive()
        closed_early = server.requests[0]
    assert (ended.status, ended.final) == (Status.COMPLETED, "All done.")
    retried = run.log.of("call.retried")[0]
    assert "court" in retried.error["message"]
    assert 0 < retried.usage["output"] < 6_000
    (verdict,) = run.log.of("verdict.issued")
    assert (verdict.rule, verdict.rung, verdict.count) == ("chanting", "observe", 1)
    assert "court" not in str(run.running.transcript.messages)
    assert closed_early is not None


@pytest.mark.case("A8-11")
async def test_the_second_chant_in_a_row_trips_the_run() -> None:
    async with ScriptedServer([in_text(), in_text(), say("never asked")]) as server:
        run = over(server)
        ended = await run.drive()
        assert len(server.requests) == 2
    assert ended.status is Status.TRIPPED
    assert run.log.events[-1].data.rule == "chanting"
    assert [v.rung for v in run.log.of("verdict.issued")] == ["observe", "stop"]


@pytest.mark.case("A8-11")
async def test_a_table_a_file_and_encoded_bytes_are_no_chant() -> None:
    table = "".join(f"| {n} | order {n * 7} | {n % 13} pieces |\n" for n in range(2_000))
    encoded = "QUJDRA" * 4_000
    rows = '{"rows": [' + ", ".join('{"a": 0, "b": 0}' for _ in range(30)) + "]}"
    async with ScriptedServer([ask_tools(("echo", rows), text=encoded), say(table)]) as server:
        run = over(server)
        ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert run.log.of("call.retried") == []


async def test_without_a_guard_nothing_is_cut_off() -> None:
    words = stream(*[chunk({"content": "court "}) for _ in range(600)], chunk({}, finish="stop"), "[DONE]")
    async with ScriptedServer([words]) as server:
        run = over(server, "off")
        run.clock = SystemClock()
        assert (await run.drive()).status is Status.COMPLETED
