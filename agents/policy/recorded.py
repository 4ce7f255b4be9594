"""Judging a recorded call sequence: what the guard would have said to each call, and where it would have stopped."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agents.policy.answers import answer_from
from agents.policy.asked import Answered, Asked, Hints
from agents.policy.contents import edited
from agents.policy.guard import Guard, refuses
from agents.policy.policies import Policy
from agents.verdicts import Rung, Verdict

_ORDER = tuple(Rung)
USER, TEXT, COMPACTION = "__user__", "__assistant_text__", "__compaction__"


class NoSequence(Exception):
    """The line cannot be judged; the text says why."""


def judged_line(number: int, line: bytes, policy: Policy) -> tuple[str, bool]:
    """The answer to line `number`, and whether it held a sequence. Never raises."""
    try:
        answer = judge_sequence(_row(line), policy)
    except NoSequence as why:
        error = {"code": "bad_sequence", "message": f"line {number}: {why}", "detail": {"line": number}}
        return json.dumps({"error": error}), False
    try:
        return json.dumps(answer, allow_nan=False), True
    except ValueError:  # only the id is the line's own
        return json.dumps({**answer, "id": None}), True


def judge_sequence(
    row: Mapping[str, Any], policy: Policy, guard_of: Callable[[Policy], Guard] = Guard
) -> dict[str, Any]:
    """Walk one sequence. Raises NoSequence for what is none."""
    calls = row.get("calls")
    if not isinstance(calls, list):
        raise NoSequence("calls must be a list")
    guard = guard_of(policy)
    hints = {str(tool): _hints(given) for tool, given in _object(row.get("hints")).items()}
    verdicts: list[dict[str, Any]] = []
    executed: list[int] = []
    final = -1
    for number, call in enumerate(calls, 1):
        if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
            raise NoSequence(f"call {number} must be an object with a tool")
        verdict, ran = _step(guard, number, call, hints)
        if ran:
            executed.append(number)
        if verdict is None:
            continue
        verdicts.append(_shown(number, verdict))
        if not verdict.shadow:
            final = max(final, _ORDER.index(verdict.rung))
            if verdict.rung is Rung.STOP:
                break
    return {
        "id": row.get("id"),
        "verdicts": verdicts,
        "executed": executed,
        "final": _ORDER[final].value if final >= 0 else "none",
    }


def _step(guard: Guard, number: int, call: dict[str, Any], hints: Mapping[str, Hints]) -> tuple[Verdict | None, bool]:
    tool = call["tool"]
    if tool in (USER, TEXT, COMPACTION):
        text = _text(call.get("args"), call.get("result"))
        if tool == USER:
            guard.person_spoke(text)
            return None, False
        return (guard.said(text, number) if tool == TEXT else guard.compressed(number)), False
    batch = call.get("batch")
    asked = Asked(
        call=number,
        batch=batch if isinstance(batch, int) and not isinstance(batch, bool) else -number,
        tool=tool,
        args=call.get("args"),
        hints=hints.get(tool, Hints()),
        tokens=_number(call.get("tokens"), int),
        cost_usd=_number(call.get("cost_usd"), float),
    )
    first = guard.judge(asked)
    if first is not None and refuses(first):
        return first, False
    result = call.get("result")
    edits, before = _object(call.get("edits")), _object(call.get("before"))
    settled = guard.observe(
        number,
        Answered(
            text=result if isinstance(result, str) else _as_text(result),
            is_error=bool(call.get("is_error")),
            edits={
                str(path): replace(
                    edited(one if isinstance(one, str) else None),
                    before=known if isinstance(known := before.get(path), str) else "",
                )
                for path, one in edits.items()
            },
            heard=_heard(call.get("heard")),
        ),
    )
    return settled or first, True


def _shown(number: int, verdict: Verdict) -> dict[str, Any]:
    shown: dict[str, Any] = {"call": number, "rung": verdict.rung.value}
    if verdict.mode is not None:
        shown["mode"] = verdict.mode.value
    shown |= {
        "rule": verdict.rule,
        "fingerprint": verdict.fingerprint,
        "count": verdict.count,
        "explanation": verdict.explanation,
    }
    if verdict.shadow:
        shown["shadow"] = True
    return shown


def _hints(given: Any) -> Hints:
    if not isinstance(given, Mapping):
        return Hints()
    rule = given.get("identity")
    if isinstance(rule, list):
        rule = tuple(str(one) for one in rule)
    read_only = given.get("read_only")
    return Hints(
        read_only=read_only if isinstance(read_only, bool) else None,
        poll=given.get("poll") is True,
        identity=rule if isinstance(rule, (tuple, str)) or rule is False else None,
    )


def _heard(given: Any) -> Mapping[str, Any] | None:
    """What the log kept of an answer in whose place the model got a stub; None for what is none."""
    try:
        return given if isinstance(given, Mapping) and answer_from(given) else None
    except (KeyError, TypeError, ValueError):
        return None


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoSequence(f"no JSON ({error})") from None
    if not isinstance(row, dict):
        raise NoSequence("a sequence is a JSON object")
    return row


def _text(args: Any, result: Any) -> str:
    if isinstance(args, dict):
        found = args.get("text") or args.get("content") or args.get("message")
        if isinstance(found, str):
            return found
    return args if isinstance(args, str) else result if isinstance(result, str) else ""


def _as_text(result: Any) -> str:
    return "" if result is None else json.dumps(result, ensure_ascii=False)


def _number(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        return kind(0)
    return kind(value)


def _object(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}
