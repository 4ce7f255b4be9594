"""The command lane's end in the worker: by hint or by poll, each command once per run, to the runs that it reaches."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import orjson
import pytest
from django.db import OperationalError

from agents import kinds
from agents.commands import CommandKind, Scope
from agents.events import draft
from control.runs import inbox, log
from control.runs.bus import Deliver
from control.runs.dbthreads import DbThreads
from control.runs.mailboxes import CommandReader
from control.runs.models import Run
from tests.control.records import batch, make_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


class Hints:
    """A bus whose hints the test gives."""

    def __init__(self) -> None:
        self.deliver: Deliver = lambda topic, message: None

    def publish(self, topic: str, message: bytes) -> None: ...

    async def subscribe(self, topics: Iterable[str], deliver: Deliver) -> "Hints":
        self.deliver = deliver
        return self

    def close(self, timeout_s: float = 0.0) -> None: ...

    def hint(self, run: Run) -> None:
        self.deliver("commands", orjson.dumps({"run": run.pk}))


@asynccontextmanager
async def reader(poll_s: float) -> AsyncIterator[tuple[CommandReader, Hints, DbThreads]]:
    hints, database = Hints(), DbThreads(1)
    made = CommandReader(hints, database, poll_s)
    await made.start()
    try:
        yield made, hints, database
    finally:
        made.close()
        await database.once(_close)
        database.close()


def _close() -> None:
    from django.db import connection

    connection.close()


def _steer(run: Run, note: str, scope: Scope = Scope.RUN) -> None:
    inbox.issue(run_id=run.pk, kind=CommandKind.STEER, by="ann", scope=scope, args={"note": note})


async def test_a_hint_brings_a_command_at_once() -> None:
    async with reader(poll_s=60) as (commands, hints, database):
        run = await database.once(make_run)
        box = commands.open(run.pk, run.path.split("/"))
        await database.once(_steer, run, "look at the tests")
        hints.hint(run)
        command = await asyncio.wait_for(box.receive(), 5)
        assert (command.kind, command.args) == (CommandKind.STEER, {"note": "look at the tests"})


@pytest.mark.case("A4-07")
async def test_without_any_hint_the_poll_brings_it() -> None:
    async with reader(poll_s=0.05) as (commands, _, database):
        run = await database.once(make_run)
        box = commands.open(run.pk, run.path.split("/"))
        await database.once(_steer, run, "one")
        assert (await asyncio.wait_for(box.receive(), 5)).args == {"note": "one"}


async def test_each_command_is_handed_to_a_run_once_and_to_its_next_holder_again() -> None:
    async with reader(poll_s=60) as (commands, _, database):
        run = await database.once(make_run)
        box = commands.open(run.pk, run.path.split("/"))
        await database.once(_steer, run, "one")
        assert [command.args["note"] for command in await box.drain()] == ["one"]
        assert await box.drain() == []
        taken = draft(
            kinds.CommandReceived(
                command=(await database.once(inbox.open_for, [run.pk]))[0].command.id, command_kind="steer", by="ann"
            ),
            at=run.created_at,
        )
        await database.once(log.append, [batch(run, taken)])
        assert await box.drain() == []
        box.close()
        assert [c.args["note"] for c in await commands.open(run.pk, [run.pk]).drain()] == ["one"]


async def test_commands_come_in_order_of_issue() -> None:
    async with reader(poll_s=60) as (commands, _, database):
        run = await database.once(make_run)
        box = commands.open(run.pk, [run.pk])
        for number in range(5):
            await database.once(_steer, run, str(number))
        assert [command.args["note"] for command in await box.drain()] == ["0", "1", "2", "3", "4"]


async def test_a_command_on_a_subtree_reaches_the_child_by_the_parents_hint() -> None:
    async with reader(poll_s=60) as (commands, hints, database):
        parent = await database.once(make_run)
        child = await database.once(lambda: make_run(parent=parent))
        box = commands.open(child.pk, child.path.split("/"))
        await database.once(
            lambda: inbox.issue(run_id=parent.pk, kind=CommandKind.INTERRUPT, by="ann", scope=Scope.SUBTREE)
        )
        hints.hint(parent)
        assert (await asyncio.wait_for(box.receive(), 5)).run == parent.pk


async def test_a_command_for_the_parent_alone_does_not_reach_the_child() -> None:
    async with reader(poll_s=60) as (commands, _, database):
        parent = await database.once(make_run)
        child = await database.once(lambda: make_run(parent=parent))
        box = commands.open(child.pk, child.path.split("/"))
        await database.once(_steer, parent, "only you")
        assert await box.drain() == []


async def test_hints_for_other_runs_ask_nothing_and_do_not_hold_up_the_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    real = inbox.open_for

    def counted(runs: list[str]) -> list[inbox.Delivery]:
        asked.append(sorted(runs))
        return real(runs)

    monkeypatch.setattr(inbox, "open_for", counted)
    async with reader(poll_s=0.2) as (commands, hints, database):
        first, second = await database.once(make_run), await database.once(make_run)
        other = await database.once(make_run)
        commands.open(first.pk, [first.pk])
        box = commands.open(second.pk, [second.pk])
        hints.hint(other)
        hints.hint(first)
        await database.once(_steer, second, "by the poll")
        waiting = asyncio.create_task(box.receive())
        while not waiting.done():
            hints.hint(first)
            await asyncio.sleep(0.01)
        assert [first.pk] in asked
        assert sorted([first.pk, second.pk]) in asked
        assert not any(other.pk in runs for runs in asked)


async def test_an_outage_of_the_database_delays_a_command_and_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    away = 3
    real = inbox.open_for

    def flaky(runs: list[str]) -> list[inbox.Delivery]:
        nonlocal away
        if away:
            away -= 1
            raise OperationalError("gone")
        return real(runs)

    async with reader(poll_s=60) as (commands, hints, database):
        run = await database.once(make_run)
        box = commands.open(run.pk, [run.pk])
        await database.once(_steer, run, "still here")
        monkeypatch.setattr(inbox, "open_for", flaky)
        hints.hint(run)
        assert (await asyncio.wait_for(box.receive(), 5)).args == {"note": "still here"}
