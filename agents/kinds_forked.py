"""The event kind of a run that goes on from another one."""

from agents.bodies import JSON, Body, event


@event("run.forked")
class RunForked(Body):
    """The run goes on from another one's history, as that stood after `turn`, at `seq` of its log.

    `messages` is that history (`agents.messages.to_plain`); `note` what a person said to it; `workspace` says from what
    the files were taken.
    """

    run: str
    turn: int
    seq: int
    by: str
    messages: list[JSON]
    note: str | None = None
    workspace: str | None = None


@event("run.replayed")
class RunReplayed(Body):
    """The run plays another one again. `mode` is `recorded` (the model's and the tools' answers are those of `run`'s
    log, and cost nothing) or `live` (a model answers). `from_turn`: the turns before it are taken as they were.
    """

    run: str
    mode: str
    by: str
    from_turn: int | None = None
    why: str | None = None
