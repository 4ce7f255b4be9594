"""The writer: order, groups, fences, and a database that goes away in the middle."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from django.db import DataError, OperationalError, connection

from agents import kinds
from agents.errors import Fenced
from agents.events import draft
from control.runs import log, writer
from control.runs.models import Run
from control.runs.writer import Pen, Writer
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


async def in_db(work: Callable[..., Any], *args: object) -> Any:
    """In a thread, as the loop must; its connection does not outlive the call."""

    def closing() -> Any:
        try:
            return work(*args)
        finally:
            connection.close()

    return await asyncio.to_thread(closing)


class Heard:
    """A bus that remembers."""

    def __init__(self) -> None:
        self.messages: list[dict[str, object]] = []

    def publish(self, topic: str, message: bytes) -> None:
        assert topic == "events"
        self.messages.append(orjson.loads(message))


class Bench:
    def __init__(self, made: Writer, bus: Heard) -> None:
        self.writer = made
        self.bus = bus
        self.fenced: list[tuple[str, int]] = []

    def write(self, pen: Pen, turn: int) -> writer.Ticket:
        return self.writer.write(pen, (draft(kinds.TurnStarted(), at=datetime.now(UTC), turn=turn),))


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    bus = Heard()
    fenced: list[tuple[str, int]] = []
    made = Writer(bus, asyncio.get_running_loop(), lambda run, epoch: fenced.append((run, epoch)))  # type: ignore[arg-type]
    made.start()
    one = Bench(made, bus)
    one.fenced = fenced
    yield one
    assert await asyncio.to_thread(made.close, 5.0)


async def pen_of(epoch: int = 1) -> Pen:
    run = await in_db(make_run)
    return Pen(run=run.pk, root=run.root, epoch=epoch, last_seq=run.last_seq)


def _turns(run: str) -> list[int]:
    return [event["turn"] for event in map(orjson.loads, log.read_after(run, 1, 1000))]


async def turns(run: str) -> list[int]:
    return await in_db(_turns, run)  # type: ignore[no-any-return]


async def test_an_awaited_ticket_is_the_seq_on_disk_and_the_bus_has_the_bytes() -> None:
    async with bench() as b:
        pen = await pen_of()
        first, second = b.write(pen, 1), b.write(pen, 2)
        assert await second == 3
        assert await first == 2
        assert await turns(pen.run) == [1, 2]
        told = [event for message in b.bus.messages for event in message["events"]]  # type: ignore[attr-defined]
        assert told == [orjson.loads(body) for body in await in_db(log.read_after, pen.run, 1, 10)]


async def test_whatever_queued_during_a_commit_goes_with_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    entered, go_on = threading.Event(), threading.Event()
    real = log.append

    def slow(batches: Sequence[log.Batch]) -> list[log.Appended]:
        groups.append(sum(len(batch.drafts) for batch in batches))
        entered.set()
        assert go_on.wait(5)
        return real(batches)

    one, two = await pen_of(), await pen_of()
    monkeypatch.setattr(log, "append", slow)
    async with bench() as b:
        b.write(one, 1)
        await asyncio.to_thread(entered.wait, 5)
        for turn in (2, 3, 4):
            b.write(one, turn)
            last = b.write(two, turn)
        go_on.set()
        await last
        assert groups == [1, 6]
        assert await turns(one.run) == [1, 2, 3, 4]


async def test_a_fenced_run_hears_it_and_the_others_go_on() -> None:
    async with bench() as b:
        old, fine = await pen_of(epoch=0), await pen_of()
        refused, kept = b.write(old, 1), b.write(fine, 1)
        assert await kept == 2
        with pytest.raises(Fenced):
            await refused
        assert b.fenced == [(old.run, 0)]
        with pytest.raises(Fenced):
            await b.write(old, 2)
        assert await turns(old.run) == []


async def test_an_outage_loses_nothing_and_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FIRST_WAIT_S", 0.01)
    away = 3
    real = log.append

    def flaky(batches: Sequence[log.Batch]) -> list[log.Appended]:
        nonlocal away
        if away:
            away -= 1
            raise OperationalError("the database system is shutting down")
        return real(batches)

    pen = await pen_of()
    monkeypatch.setattr(log, "append", flaky)
    async with bench() as b:
        for turn in range(1, 20):
            last = b.write(pen, turn)
            await asyncio.sleep(0.002)
        await last
        assert await turns(pen.run) == list(range(1, 20))


async def test_a_commit_whose_answer_was_lost_is_not_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FIRST_WAIT_S", 0.01)
    lost = False
    real = log.append

    def answer_lost(batches: Sequence[log.Batch]) -> list[log.Appended]:
        nonlocal lost
        done = real(batches)
        if not lost:
            lost = True
            raise OperationalError("server closed the connection unexpectedly")
        return done

    pen = await pen_of()
    monkeypatch.setattr(log, "append", answer_lost)
    async with bench() as b:
        first = b.write(pen, 1)
        assert await first == 2
        assert await b.write(pen, 2) == 3
        assert await turns(pen.run) == [1, 2]
        assert [message["first"] for message in b.bus.messages] == [2, 3]


async def test_what_the_database_refuses_hurts_only_its_own_run(monkeypatch: pytest.MonkeyPatch) -> None:
    real = log.append
    bad: list[str] = []

    def picky(batches: Sequence[log.Batch]) -> list[log.Appended]:
        if any(batch.run in bad for batch in batches):
            raise DataError("invalid byte sequence")
        return real(batches)

    monkeypatch.setattr(log, "append", picky)
    async with bench() as b:
        wrong, fine = await pen_of(), await pen_of()
        bad.append(wrong.run)
        refused, kept = b.write(wrong, 1), b.write(fine, 1)
        assert await kept == 2
        with pytest.raises(DataError):
            await refused


async def test_close_writes_what_is_queued() -> None:
    async with bench() as b:
        pen = await pen_of()
        for turn in range(1, 50):
            b.write(pen, turn)
    assert len(await turns(pen.run)) == 49
    row = await in_db(lambda: Run.objects.get(pk=pen.run))
    assert row.last_seq == 50


async def test_a_group_too_large_to_carry_travels_as_a_bare_hint() -> None:
    async with bench() as b:
        pen = await pen_of()
        body = kinds.RunWaiting(reason="question", text="x" * 70_000)
        await b.writer.write(pen, (draft(body, at=datetime.now(UTC)),))
        assert b.bus.messages == [{"run": pen.run, "root": pen.root, "epoch": 1, "first": 2, "last": 2}]
