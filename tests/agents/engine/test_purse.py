"""What a run's model calls are paid from: lowered, refused, waited for, told of, and the last word."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from agents.commands import Command, CommandKind
from agents.engine.books import MemoryBook
from agents.engine.local import MemorySpawner
from agents.errors import ModelError, Spent
from agents.messages import Usage
from agents.policy.accounts import NOTHING, Amounts, Ceilings, Need
from agents.policy.limits import limits_from
from agents.ports import ChatRequest
from agents.spec import ModelSpec, Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import echo

PRICED = ModelSpec(model="bench", base_url="http://127.0.0.1:9/v1")


class Capped(ScriptedModel):
    """Keeps the cap of every request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.caps: list[int | None] = []

    async def ask(self, request: ChatRequest, on_text: Any) -> Any:
        self.caps.append(request.max_output_tokens)
        return await super().ask(request, on_text)


def run_of(
    model: Any, book: MemoryBook | None = None, policy: dict[str, Any] | None = None, **limits: Any
) -> MemoryRun:
    spec = memory_spec(limits=limits_from(limits, "request"), policy_body=policy or {}, model=PRICED)
    return memory_run(model, tools=[echo()], spec=spec, ledger=(book or MemoryBook()).of(spec))


def again(_: Any) -> Any:
    return asks(("echo", {}))


def told(run: MemoryRun, rule: str) -> list[Any]:
    return [one for one in run.log.of("verdict.issued") if one.rule == rule and one.rung == "observe"]


async def test_far_from_every_limit_the_model_may_write_what_it_likes() -> None:
    model = Capped(["done"])
    await run_of(model, max_tokens=5_000_000).drive()
    assert model.caps == [None]


async def test_near_a_limit_the_answer_is_told_what_it_may_have() -> None:
    model = Capped(["done"])
    ended = await run_of(model, max_tokens=4000).drive()
    assert ended.status is Status.COMPLETED
    assert model.caps[0] is not None and 3000 < model.caps[0] < 4000


async def test_a_tree_has_300_model_calls_without_a_word_of_its_policy() -> None:
    book = MemoryBook()
    run = run_of(ScriptedModel(["done"]), book)
    await run.drive()
    account = book.accounts[f"run:{run.spec.id}"]
    assert (account.limit, account.spent.calls, account.held) == (Ceilings(calls=300), 1, NOTHING)


async def test_model_calls_end_where_the_policy_says() -> None:
    model = ScriptedModel(again)
    run = run_of(model, policy={"fuses": {"max_model_calls": 3}})
    ended = await run.drive()
    assert (ended.status, len(model.requests)) == (Status.TRIPPED, 3)
    assert run.log.events[-1].data.fuse == "max_model_calls"


async def test_a_refused_call_leaves_no_trace_of_a_call() -> None:
    run = run_of(ScriptedModel(again), max_tokens=500)
    assert (await run.drive()).status is Status.TRIPPED
    assert run.log.of("call.started") == []


@pytest.mark.case("A7-10")
async def test_every_kind_of_end_settles_what_was_held() -> None:
    spent = Spent(usage=Usage(input=40, output=60), cost_usd="0.00005", cost_source="estimated")
    unsent = Spent(usage=None, cost_usd="0", cost_source="none")
    book = MemoryBook()
    steps = [
        ModelError("timeout", "broke", spent=spent),
        ModelError("connection", "refused", spent=unsent),
        asks(("echo", {})),
        "done",
    ]
    run = run_of(ScriptedModel(steps), book, max_cost="1")
    assert (await run.drive()).status is Status.COMPLETED
    account = book.accounts[f"run:{run.spec.id}"]
    assert account.held == NOTHING
    assert account.spent == Amounts(usd=2_050_000, tokens=130, calls=3)


async def test_a_cancelled_call_of_which_nothing_is_known_counts_whole() -> None:
    book, never = MemoryBook(), asyncio.Event()

    async def stall() -> Any:
        await never.wait()

    run = run_of(ScriptedModel(lambda _: stall()), book, max_cost="1")
    driving = asyncio.create_task(run.drive())
    await run.log.until("call.started")
    await asyncio.sleep(0)
    held = book.accounts[f"run:{run.spec.id}"].held
    assert held.calls == 1
    run.running.stop(by="ann")
    await driving
    account = book.accounts[f"run:{run.spec.id}"]
    assert (account.held, account.spent) == (NOTHING, held)


async def test_four_fifths_of_a_fuse_are_told_of_once_also_after_a_resume() -> None:
    limits = {"max_turns": 20, "max_steps": 10}
    run = run_of(ScriptedModel(lambda messages: again(messages) if len(messages) < 20 else "done"), **limits)
    await run.drive()
    (steps,) = told(run, "max_steps")
    assert (steps.detector, steps.explanation) == ("fuses", "80 % of max_steps is used")
    assert told(run, "max_turns") == []
    once_more = memory_run(ScriptedModel(["done"]), tools=[echo()], log=run.log, spec=run.spec)
    for event in run.log.events:
        once_more.running.transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at, seq=event.seq)
    assert once_more.running.transcript.warned == {"max_steps"}


async def test_the_policy_names_a_number_of_model_calls_to_be_told_of() -> None:
    steps = [again(None)] * 4
    run = run_of(ScriptedModel([*steps, "done"]), policy={"fuses": {"warn_model_calls": 3}})
    await run.drive()
    assert [one.explanation for one in told(run, "warn_model_calls")] == ["3 of 300 model calls are made"]


async def test_a_tripped_run_has_its_last_word_inside_the_cap() -> None:
    def script(messages: Any) -> Any:
        return "I was going in circles." if "stopped by its guard" in str(messages[-1]) else again(messages)

    book, model = MemoryBook(), Capped(script, usage=Usage(input=300, output=400))
    run = run_of(model, book, {"last_word": True}, max_tokens=6000)
    ended = await run.drive()
    assert ended.status is Status.TRIPPED
    assert run.log.events[-1].data.final == "I was going in circles."
    account = book.accounts[f"run:{run.spec.id}"]
    assert account.spent.tokens <= 6000 and account.held == NOTHING
    assert model.caps[-1] is not None and model.caps[-1] <= 1000


async def test_without_a_price_a_limit_of_money_trips_unless_the_policy_counts_tokens_only() -> None:
    spec = memory_spec(limits=limits_from({"max_cost": "1"}, "request"))
    refused = memory_run(ScriptedModel(["done"]), spec=spec)
    assert (await refused.drive()).status is Status.TRIPPED
    assert "no price" in refused.log.events[-1].data.verdict["explanation"]
    loose = memory_spec(limits=limits_from({"max_cost": "1"}, "request"), policy_body={"unpriced": "tokens_only"})
    allowed = memory_run(ScriptedModel(["done"]), spec=loose)
    assert (await allowed.drive()).status is Status.COMPLETED
    assert len(told(allowed, "unpriced")) == 1


async def test_a_call_waits_for_what_others_hold_and_goes_on_when_it_comes_back() -> None:
    book = MemoryBook()
    run = run_of(ScriptedModel(["done"]), book, max_tokens=5000)
    ledger = book.of(run.spec)
    ledger.open(Ceilings(tokens=5000, calls=300), NOTHING)
    other = await ledger.reserve(Need(input_tokens=0, output_tokens=4500), call="c", attempt=1, credential=None)
    driving = asyncio.create_task(run.drive())
    waiting = await run.log.until("run.waiting")
    assert "4500 tokens held by other calls" in waiting.data.text
    ledger.settle(other, Amounts(tokens=10, calls=1))  # type: ignore[arg-type]
    assert (await driving).status is Status.COMPLETED
    assert "run.continued" in run.log.kinds()


async def test_a_raised_limit_is_the_accounts_limit_at_once() -> None:
    book = MemoryBook()

    async def script(messages: Any) -> Any:
        if len(messages) > 2:
            await run.log.until("fuse.raised")
            seen.append(book.accounts[f"run:{run.spec.id}"].limit.tokens)
            return "done"
        return again(messages)

    seen: list[int | None] = []
    run = run_of(ScriptedModel(lambda messages: script(messages)), book, max_tokens=9000)
    driving = asyncio.create_task(run.drive())
    await run.log.until("turn.started")
    run.inbox.send(
        Command(id="k", kind=CommandKind.RAISE, run=run.spec.id, by="ann", args={"limits": {"max_tokens": "70000"}})
    )
    await driving
    assert seen == [70_000]


async def test_sub_agents_draw_from_their_parents_account() -> None:
    book = MemoryBook()
    spec = memory_spec(limits=limits_from({"max_cost": "0.02"}, "request"), model=PRICED)
    answers: list[int] = []

    def script(messages: Any) -> Any:
        answers.append(1)
        return again(messages)

    usage = Usage(input=100, output=500)

    def make(child: Any, log: Any) -> Any:
        model = ScriptedModel(script, usage=usage)
        return memory_run(model, tools=[echo()], spec=child, log=log, ledger=book.of(child)).running._ports

    from agents.ports import SpawnRequest

    book.of(spec).open(Ceilings(usd=20_000_000), NOTHING)
    spawner = MemorySpawner(spec, make)
    children = [await spawner.spawn(SpawnRequest(parent=spec.id, call=f"c{n}", task="part")) for n in range(8)]
    ends = [await child.wait() for child in children]
    assert {end.status for end in ends} == {Status.TRIPPED}
    account = book.accounts[f"run:{spec.id}"]
    assert account.held == NOTHING and account.spent.usd <= 20_000_000
    assert account.spent.usd == len(answers) * 1_000_000 and Decimal(account.spent.usd) > 5_000_000
