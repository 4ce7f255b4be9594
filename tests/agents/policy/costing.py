"""What judging one call costs, by kind of call: a read, a failing command, a JSON answer, an edit, an effect."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agents.policy.asked import Answered, Asked
from agents.policy.contents import edited
from agents.policy.guard import Guard
from tests.agents.policy.guarding import policy

_CODE = "    total = add(row, amount)  # a line of some code\n"
_TRACE = '  File "/srv/app/billing/totals.py", line 12, in add\n    raise ValueError(row)\n'
_PROSE = "Please read the figures of the week and answer with what you think of them. "


@dataclass(frozen=True)
class Told:
    """One call and its answer; no two of a kind are equal."""

    tool: str
    args: dict[str, Any]
    text: str
    failed: bool = False
    writes: str = ""


def _filled(head: str, line: str, size: int) -> str:
    return head + (line * (size // len(line) + 1))[: max(size - len(head), 0)]


def _read(n: int, size: int) -> Told:
    return Told("read_file", {"path": f"src/billing/module_{n}.py", "limit": 200}, _filled(f"{n} ", _CODE, size - 50))


def _failing(n: int, size: int) -> Told:
    files = " ".join(f"tests/unit/test_{n}_{i}.py" for i in range(size // 60))
    text = _filled(f"FAILED tests/unit/test_{n}_0.py - AssertionError: {n} != 3\n", _TRACE, size // 2)
    return Told("bash", {"command": f"cd /srv/app && pytest -q --maxfail=1 {files}"}, text, failed=True)


def _json(n: int, size: int) -> Told:
    items = [
        {"id": n * 100 + i, "name": f"item {n}-{i}", "status": "open", "updated_at": "2024-05-01T10:00:00Z"}
        for i in range(size // 120 + 1)
    ]
    args = {"query": f"status:open owner:{n}", "filters": {"team": ["a", "b"]}, "limit": 20}
    return Told("search_tickets", args, json.dumps({"total": len(items), "items": items, "request_id": f"ab{n}"}))


def _edit(n: int, size: int) -> Told:
    path = f"src/billing/m{n % 7}.py"
    args = {"path": path, "old_string": _filled(f"# {n}\n", _CODE, size // 4), "new_string": _CODE * (size // 200)}
    text = _filled(f"The file {path} has been updated.\n", "    12\tdef add(row):\n", size // 2)
    return Told("edit_file", args, text, writes=path)


def _effect(n: int, size: int) -> Told:
    args = {"to": f"p{n}@example.com", "subject": f"Report {n}", "body": _filled(f"Hello {n}. ", _PROSE, size - 200)}
    return Told("send_email", args, json.dumps({"ok": True, "id": f"msg-{n}", "note": "delivered to the queue"}))


KINDS: dict[str, Callable[[int, int], Told]] = {
    "text read": _read,
    "failing command": _failing,
    "JSON answer": _json,
    "edit": _edit,
    "effect": _effect,
}


def judged(guard: Guard, kind: str, size: int, first: int, steps: int) -> float:
    """Microseconds of CPU per call whose arguments and answer are `size` bytes together: the quiet half of them, for
    other work on the machine only ever adds."""
    return _quiet(times_of(guard, kind, size, first, steps))


def mean(kind: str, size: int, rounds: int, steps: int) -> float:
    """Microseconds of CPU per call over all calls: each as it took in the quietest of several rounds, for a call that
    costs more than its neighbours does so in each."""
    each = zip(*(times_of(Guard(policy()), kind, size, 1, steps) for _ in range(rounds)), strict=True)
    return sum(map(min, each)) / steps / 1_000


def times_of(guard: Guard, kind: str, size: int, first: int, steps: int) -> list[int]:
    """Nanoseconds of CPU of each of these calls."""
    times = []
    for n in range(first, first + steps):
        told = KINDS[kind](n, size)
        asked = Asked(call=n, batch=n, tool=told.tool, args=told.args)
        edits = {told.writes: edited(f"v{n}")} if told.writes else {}
        answered = Answered(text=told.text, is_error=told.failed, edits=edits)
        began = time.process_time_ns()
        guard.judge(asked)
        guard.observe(n, answered)
        times.append(time.process_time_ns() - began)
    return times


def floor(kind: str, size: int, steps: int = 200) -> float:
    """Microseconds to parse and checksum the same bytes."""
    times = []
    for n in range(steps):
        told = KINDS[kind](n, size)
        text = json.dumps([told.args, told.text])
        began = time.process_time_ns()
        json.loads(text)
        sha256(text.encode()).hexdigest()
        times.append(time.process_time_ns() - began)
    return _quiet(times)


def best(kind: str, size: int, rounds: int = 3, steps: int = 150) -> float:
    """The quietest of several rounds, each with a guard of its own."""
    return min(judged(Guard(policy()), kind, size, 1, steps) for _ in range(rounds))


def _quiet(times: list[int]) -> float:
    half = sorted(times)[: max(len(times) // 2, 1)]
    return sum(half) / len(half) / 1_000
