"""Plain ways to ask a guard: a walk over calls, and how well a file of recorded sequences is judged."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.policy.policies import Policy, policy_from, shipped
from agents.policy.recorded import judge_sequence

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RUNGS = ("none", "observe", "steer", "block", "escalate", "stop")


def policy(name: str = "default", **more: Any) -> Policy:
    return policy_from({**shipped(name), **more}, name)


def call(
    tool: str, args: Any, result: Any = "ok", *, error: bool = False, batch: int = 0, **more: Any
) -> dict[str, Any]:
    return {"tool": tool, "args": args, "result": result, "is_error": error, "batch": batch, **more}


def user(text: str) -> dict[str, Any]:
    return {"tool": "__user__", "args": {"text": text}}


def walk(
    calls: Iterable[dict[str, Any]], by: Policy | None = None, hints: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Judge calls; those without a batch of their own are one batch each."""
    rows = [{**one, "batch": one.get("batch") or 1000 + n} for n, one in enumerate(calls)]
    return judge_sequence({"id": "t", "calls": rows, "hints": dict(hints or {})}, by or policy())


def rung_of(answer: Mapping[str, Any], number: int) -> str:
    return next((one["rung"] for one in answer["verdicts"] if one["call"] == number), "none")


@dataclass(frozen=True)
class Score:
    loops: int
    caught: int
    healthy: int
    stopped: int
    refused: int
    stubbed: int
    misses: tuple[str, ...]


def score(name: str) -> Score:
    """Loops caught by the call they should be, and healthy runs stopped, refused or stubbed."""
    rows = [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines() if line.strip()]
    caught = stopped = refused = stubbed = 0
    misses: list[str] = []
    loops = [row for row in rows if row["kind"] == "loop"]
    for row in rows:
        verdicts = judge_sequence(row, policy())["verdicts"]
        if row["kind"] == "loop":
            wanted, by = RUNGS.index(row["expect"]["verdict"]), row["expect"]["by_call"]
            in_time = any(RUNGS.index(one["rung"]) >= wanted and one["call"] <= by for one in verdicts)
            caught += in_time
            if not in_time:
                misses.append(row["id"])
            continue
        refuses = any(one.get("mode") == "refuse" or one["rung"] == "escalate" for one in verdicts)
        stops, stubs = (
            any(one["rung"] == "stop" for one in verdicts),
            any(one.get("mode") == "stub" for one in verdicts),
        )
        stopped, refused, stubbed = stopped + stops, refused + refuses, stubbed + stubs
        if stops or refuses or stubs:
            misses.append(row["id"])
    return Score(len(loops), caught, len(rows) - len(loops), stopped, refused, stubbed, tuple(misses))
