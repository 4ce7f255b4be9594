"""Everything that happens around the calls: the task, notes, commands, verdicts, children, edits and the end."""

from agents.events import Event
from agents.kinds import CommandReceived, EditRecorded, SteerInjected, VerdictIssued
from agents.kinds import RunInterrupted as Interrupted
from agents.kinds import RunTripped as Tripped
from control.dashboard.folds.calls import close_open
from control.dashboard.folds.fold import TURNS, RunFold, on
from control.dashboard.folds.verdicts import tripped_words, verdict_words


@on("run.queued", "run.replayed", "run.forked", "run.started", "memory.injected", "run.requeued")
def beginning(fold: RunFold, event: Event) -> None:
    fold.fact(event, TURNS)


@on("run.waiting", "run.continued", "context.compressed", "credential.rotated", "model.fell_back")
@on("steer.refused", "hint.injected", "fuse.raised", "server.connected", "server.lost")
def happening(fold: RunFold, event: Event) -> None:
    fold.fact(event)


@on("child.started", "child.finished")
def child(fold: RunFold, event: Event) -> None:
    fold.fact(event, fold.after(event))


@on("command.received")
def command_received(fold: RunFold, event: Event) -> None:
    """A steer note is told when it goes in; every other command when it arrives."""
    assert isinstance(event.data, CommandReceived)
    if event.data.command_kind != "steer":
        fold.fact(event)


@on("steer.injected")
def steer_injected(fold: RunFold, event: Event) -> None:
    assert isinstance(event.data, SteerInjected)
    asked = fold.document.nodes.get(f"call-{event.data.after_call}")
    fold.fact(event, after=asked.context["name"] if asked else None)


@on("verdict.issued")
def verdict_issued(fold: RunFold, event: Event) -> None:
    assert isinstance(event.data, VerdictIssued)
    words = verdict_words(fold, event.data)
    if event.call in fold.asked and f"call-{event.call}" not in fold.document.nodes:
        fold.early.setdefault(event.call, []).append((event, words))
    else:
        fold.fact(event, fold.after(event), **words)
    turn = fold.turns.get(event.turn or 0)
    if turn is not None:
        turn.verdicts += 1
        fold.mark()
        fold.outline(turn.number)


@on("edit.recorded")
def edit_recorded(fold: RunFold, event: Event) -> None:
    assert isinstance(event.data, EditRecorded)
    fold.fact(event, fold.after(event))


@on("run.stopping")
def run_stopping(fold: RunFold, event: Event) -> None:
    fold.fact(event)


@on("run.completed", "run.exhausted", "run.interrupted", "run.tripped", "run.failed", "run.lost")
def end(fold: RunFold, event: Event) -> None:
    close_open(fold, event)
    fold.ended = True
    stopped = event.data.stopped if isinstance(event.data, Interrupted) else None
    fold.fact(
        event, TURNS, stopped=stopped, **(tripped_words(fold, event.data) if isinstance(event.data, Tripped) else {})
    )
