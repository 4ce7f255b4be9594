"""What the style guide shows: a run's log in which every kind of event happens, rows in every state, asks of each sort.

Nothing here is in the database. Kinds that are added later get a line by themselves, filled in by the type of each
field, so that none is missing.
"""

from collections.abc import Iterator
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, get_args, get_type_hints

from agents import kinds
from agents.bodies import Body
from agents.commands import CommandKind
from agents.events import draft, encode
from agents.kinds import KINDS, BatchPlanned, CallCompleted, CallRetried, CallStarted, TurnStarted
from control.dashboard.asks import Answer, Ask
from control.dashboard.folds.fold import RunFold
from control.dashboard.gauges import Fuse
from control.dashboard.render import turns_html
from control.dashboard.side import Note
from control.dashboard.stopping import Step, Stop
from control.runs.models import Command, Run, Worker

RUN = "01930000-0000-7000-8000-00000000000a"
CHILD = "01930000-0000-7000-8000-00000000000b"
_REFERENCE = {"sha256": "0" * 64, "bytes": 4096}
_VERDICT = {"rule": "repeat_read", "rung": "steer", "detector": "repeats", "count": 4, "explanation": "Read 4 times."}
_WORDS: dict[str, Any] = {
    "agent": "nightly-fixer", "task": "Mend total() in the basket project", "by": "ann", "host": "north-1",
    "worker": "w-1", "policy": "default", "reason": "the branch is wrong", "run": CHILD, "status": "completed",
    "model": {"model": "big-1"}, "error": {"reason": "rate_limit", "message": "429 Too Many Requests", "status": 429},
    "explanation": "The same read gave the same answer 4 times.", "rung": "steer", "detector": "repeats",
    "rule": "repeat_read", "verdict": _VERDICT, "prompt": _REFERENCE, "tools": _REFERENCE,
    "limits": {"max_turns": "60"},
    "summary": "Read 14 files; total() rounds each line before it adds.", "final": "Both tests pass. One line changed.",
    "path": "basket/total.py", "note": "Leave the public signature as it is.", "server": "git", "until": None,
    "stopped": {"seconds": 0.18, "verified": True, "sockets": 1, "processes": 2}, "evidence": [1], "state": "A",
    "code": "no_turn_left", "limit": "max_turns", "final_by": "model", "command_kind": "steer", "last_seen": None,
    "from_": "primary", "to": "second", "fuse": "max_steps", "labels": {"team": "shop"},
    "why": "its worker was drained",
    "text": "You have read this file 4 times; nothing in it has changed.", "mode": "refuse", "cooldown_s": 12.0,
    "notes": ["Tests run with `pytest -q`."], "wasted_usd": "0.042",
}  # fmt: skip
# How calls end, each with what the row then shows.
_ENDS = (
    "ok", "error", "blocked", "stub", "denied", "dry_run", "not_started", "timeout", "stopped", "effect_unknown"
)  # fmt: skip
_OWN_LINES = ("call.", "turn.", "batch.", "run.completed")


def _filled(cls: type[Body]) -> Body:
    """A body of a kind, each field by its name, else by its type; optional ones where there is a word for them."""
    hints, given = get_type_hints(cls), {}
    for one in fields(cls):
        required = one.default is MISSING and one.default_factory is MISSING
        if one.name in _WORDS and (required or _WORDS[one.name] is not None):
            wanted = str(hints[one.name])
            as_list = wanted.startswith("list") and not isinstance(_WORDS[one.name], list)
            given[one.name] = ["read_file"] if as_list else _WORDS[one.name]
        elif required:
            given[one.name] = _by_type(hints[one.name])
    return cls(**given)


def _by_type(hint: Any) -> Any:
    plain = {str: "a word", int: 3, float: 1.5, bool: False, type(None): None}
    if hint in plain:
        return plain[hint]
    if str(hint).startswith("list"):
        return []
    inner = get_args(hint)
    return _by_type(inner[0]) if inner and "|" in str(hint) else {}


def _log() -> Iterator[tuple[Body, int | None, str | None]]:
    """Body, turn and call, in an order in which they might come."""
    yield _filled(KINDS["run.queued"]), None, None
    yield _filled(KINDS["run.started"]), None, None
    yield TurnStarted(), 1, None
    yield CallStarted(operation="chat", name="chat", model="big-1", credential="primary"), 1, "c-chat"
    error = {"reason": "rate_limit", "message": "429 Too Many Requests", "status": 429}
    until = (datetime.now(UTC) + timedelta(seconds=12)).isoformat()
    yield CallRetried(error=error, action="rotate", wait_s=12.0, until=until, attempt=1), 1, "c-chat"
    usage = {"input": 2840, "output": 190, "cache_read": 1200}
    text = "I read both tests first, then the function that they disagree about."
    told: dict[str, Any] = {
        "text": text,
        "usage": usage,
        "cost_usd": "0.0052",
        "cost_source": "measured",
        "duration_ms": 4100.0,
    }
    yield CallCompleted(operation="chat", name="chat", status="ok", **told), 1, "c-chat"
    calls = [f"c-{end}" for end in _ENDS]
    yield (
        BatchPlanned(groups=[calls[:3], *([one] for one in calls[3:]), ["c-open"]], why="three reads side by side"),
        1,
        None,
    )
    for number, (end, call) in enumerate(zip(_ENDS, calls, strict=True)):
        args = f'{{"path": "basket/part_{number}.py"}}'
        if end != "not_started":
            yield CallStarted(operation="execute_tool", name="read_file", args=args, concurrency="safe"), 1, call
        result = f"{number} lines"
        yield CallCompleted(
            operation="execute_tool", name="read_file", status=end, args=args, result=result,
            duration_ms=31.0 * (number + 1),
        ), 1, call  # fmt: skip
    open_args = '{"command": "pytest -q"}'
    yield CallStarted(operation="execute_tool", name="run_command", args=open_args, concurrency="unknown"), 1, "c-open"
    yield TurnStarted(), 2, None
    for kind in sorted(KINDS):
        if not kind.startswith(_OWN_LINES) and kind not in ("run.queued", "run.started"):
            yield _filled(KINDS[kind]), 2, None
    yield kinds.Unknown(name="run.dreamt", raw={"of": "a later version"}), 2, None
    yield _filled(KINDS["run.completed"]), None, None


def turns() -> str:
    """The middle column of a run page with all of it."""
    fold, at = RunFold(), datetime.now(UTC)
    lines = []
    for seq, (body, turn, call) in enumerate(_log(), 1):
        item = draft(body, at=at + timedelta(seconds=seq), turn=turn, call=call)
        lines.append(encode(item, run=RUN, root=RUN, seq=seq, ts=at))
    fold.feed(lines)
    return turns_html(fold.document, last=20)[0]


def run(status: str = "running", *, waiting_for: str | None = None, **more: Any) -> Run:
    now = datetime.now(UTC)
    limits = {"max_turns": "60", "max_tokens": "200000", "max_cost": "2"}
    frozen = {name: {"value": value, "source": "agent"} for name, value in limits.items()}
    given: dict[str, Any] = {
        "id": RUN, "root": RUN, "path": RUN, "agent": "nightly-fixer", "task": "Mend total() in the basket project",
        "owner": "ann", "status": status, "waiting_for": waiting_for, "turns": 47, "input_tokens": 171_200,
        "output_tokens": 9_000, "cost_usd": Decimal("1.84"), "errors": 2, "created_at": now - timedelta(minutes=14),
        "started_at": now - timedelta(minutes=13), "last_activity_at": now, "activity": "edit_file basket/total.py",
        "labels": {"team": "shop"}, "spec": {"limits": frozen},
    }  # fmt: skip
    return Run(**{**given, **more})


def fleet() -> list[Run]:
    """A run in every state."""
    now = datetime.now(UTC)
    ended: dict[str, Any] = {"finished_at": now, "exit_reason": "answered"}
    rows = [run(), run("queued", turns=0), run("stopping"), run("running", lease_until=now - timedelta(seconds=47))]
    rows += [run("waiting", waiting_for=word) for word in ("question", "approval", "pause", "quota")]
    rows += [run(word, **ended) for word in ("completed", "exhausted", "failed", "lost")]
    rows.append(run("tripped", rung="stop", **{**ended, "exit_reason": "rule:repeat_read"}))
    rows.append(run("interrupted", stopped={"seconds": 0.18, "verified": True}, **ended))
    for number, one in enumerate(rows):
        one.pk = f"{RUN[:-2]}{number:02x}"
    return rows


def asks() -> list[Ask]:
    now = datetime.now(UTC)
    args = '{\n  "command": "git push origin release/4.18"\n}'
    base: dict[str, Any] = {"run": run("waiting"), "at": now - timedelta(minutes=12)}
    question = "Two tests disagree about rounding. Which one is right?"
    return [
        Ask(call="s1", kind="question", text=question, choices=["test_total", "test_receipt"], soon=True,
            ends=now + timedelta(minutes=4), **base),
        Ask(call="s2", kind="approval", text="git push", name="run_command", args=args, choices=[], **base),
        Ask(call="s3", kind="question", text="May I read the replica's log?", choices=[], **base),
    ]  # fmt: skip


def answer() -> Answer:
    return Answer(call="s4", by="ben", at=datetime.now(UTC), says="“test_total”")


def fuses() -> list[Fuse]:
    """Unused, half, near, nearly over, tripped, without a limit."""
    of: list[tuple[str, float | str, int]] = [
        ("max_turns", 0, 60),
        ("max_steps", 30, 60),
        ("max_tokens", 166_000, 200_000),
        ("max_cost", "1.86", 2),
    ]
    found = [
        Fuse(name=name, title=title, used=Decimal(used), limit=Decimal(limit), source="agent")
        for (name, used, limit), title in zip(of, ("Turns", "Tool steps", "Tokens", "Cost"), strict=True)
    ]
    tripped = Fuse(
        name="max_identical_calls", title="Identical calls", used=Decimal(12), limit=Decimal(12), source="policy",
        tripped=True, what="read_file",
    )  # fmt: skip
    return [*found, tripped, Fuse(name="max_seconds", title="Wall clock", used=Decimal(780), limit=None, source="")]


def stop() -> Stop:
    at = datetime.now(UTC)
    words = (("requested", 0.0), ("delivered", 0.02), ("stopping", 0.04), ("stopped", 0.18))
    command = Command(id="s", kind=CommandKind.INTERRUPT.value, by="ann", reason="wrong branch", issued_at=at)
    return Stop(
        command=command, steps=[Step(word=word, at=at, after=after) for word, after in words], reached=6, stopped=6,
        seconds=0.18, verified=True, why="", refused="", sockets=3, processes=4,
    )  # fmt: skip


def notes() -> list[Note]:
    at = datetime.now(UTC)
    states = ("requested", "delivered", "withdrawing", "withdrawn", "done", "refused")
    command = [Command(id=f"n{number}", args={}, issued_at=at, by="ann") for number in range(len(states))]
    return [
        Note(command=one, text="Leave the public signature as it is.", state=state, turn=9, code="no_turn_left")
        for one, state in zip(command, states, strict=True)
    ]


def workers() -> list[Worker]:
    now = datetime.now(UTC)
    base: dict[str, Any] = {
        "host": "north-1",
        "pid": 41,
        "started_at": now,
        "capacity": 8,
        "version": "0.1.0",
        "load": 0.42,
    }
    ages: tuple[tuple[dict[str, Any], int], ...] = (
        ({}, 2),
        ({"draining": True}, 2),
        ({}, 47),
        ({"kind": "desk", "capacity": 0}, 2),
    )
    return [
        Worker(id=f"{RUN[:-1]}{number}", seen_at=now - timedelta(seconds=age), **{**base, **more})
        for number, (more, age) in enumerate(ages)
    ]
