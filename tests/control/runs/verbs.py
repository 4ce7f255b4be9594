"""Verbs and looks at their outcome, for the tests of commands."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

from agents import kinds
from agents.commands import CommandKind, Scope
from control.runs import inbox
from control.runs.models import Command, Event, Receipt, Run
from tests.control.records import make_run, write


def interrupt(run: Run, scope: Scope = Scope.SUBTREE, **given: Any) -> inbox.Issued:
    return inbox.issue(run_id=run.pk, kind=CommandKind.INTERRUPT, by="ann", scope=scope, **given)


def steer(run: Run, note: str = "use b") -> Command:
    issued = inbox.issue(run_id=run.pk, kind=CommandKind.STEER, by="ann", args={"note": note})
    assert issued.command is not None
    return issued.command


def received(command: Command) -> kinds.CommandReceived:
    return kinds.CommandReceived(command=command.pk, command_kind=command.kind, by=command.by)


def stopped(command: Command | None) -> kinds.RunInterrupted:
    return kinds.RunInterrupted(
        command=command.pk if command else None, by="ann", reason="", stopped={"seconds": 0.1, "verified": True}
    )


def receipt(command: Command, run: Run) -> tuple[str, str | None]:
    row = Receipt.objects.get(command_id=command.pk, run_id=run.pk)
    return row.state, row.code


def kinds_of(run: Run) -> list[str]:
    return list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("kind", flat=True))


def together(*acts: Callable[[], object]) -> list[object]:
    """Run these at the same moment, each in a thread of its own; what each returned or raised."""
    start = threading.Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def work(number: int, act: Callable[[], object]) -> None:
        try:
            start.wait()
            results[number] = act()
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(n, act)) for n, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def asking(run: Run, call: str) -> None:
    write(run, kinds.CallStarted(operation="execute_tool", name="clarify", args='{"question":"a?"}'), turn=1, call=call)
    write(run, kinds.RunWaiting(reason="question", call=call, text="a or b?"), turn=1, call=call)


def parked() -> Run:
    run = make_run()
    asking(run, f"q-{run.pk[:8]}{run.pk[-12:]}")
    Run.objects.filter(pk=run.pk).update(lease_until=None, attempts=2)
    run.refresh_from_db()
    return run
