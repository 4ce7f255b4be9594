"""Calls that a person must allow first: asked for one at a time, decided once, and never run on an old consent."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents import kinds
from agents.commands import Command
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.tool_call import Ready, Result
from agents.errors import ToolError
from agents.policy import approvals
from agents.policy.approvals import Rule
from agents.policy.arguments import safe_args
from agents.policy.redaction import cut, has_marker, make_safe
from agents.ports import Tool
from agents.spec import CallStatus, ConcurrencyClass
from agents.tools.registry import parse_args

# More than a person reads, and than an event should hold once more.
SHOWN_ARGS = 200_000
_LINE = 200


class Approvals:
    """The approvals of one run. A decision is bound to its call and arguments and is used up when the call starts."""

    def __init__(
        self,
        *,
        rules: Sequence[Rule],
        journal: Journal,
        control: RunControl,
        resolve: Callable[[Tool, Mapping[str, Any]], tuple[str, ...]],
        dry_run: bool = False,
    ) -> None:
        self._rules = rules
        self._journal = journal
        self._control = control
        self._resolve = resolve
        self._dry_run = dry_run

    def rule_for(self, one: Ready) -> Rule | None:
        """Why a person must allow this call; None if nobody need be asked."""
        waiting = self._journal.transcript.batch.get(one.asked.call)
        if waiting is not None and waiting.child:
            return None  # it was allowed and has begun: its child is only waited for
        if self._dry_run and one.tool.spec.concurrency is not ConcurrencyClass.SAFE:
            return None  # it will only say what it would do
        return approvals.needed(self._rules, one.asked.name, one.args)

    async def settle(self, one: Ready, rule: Rule, turn: int) -> Ready | Result:
        """The call as a person allows it, or its result if that person denies it. Waits for as long as it takes."""
        waiting = self._journal.transcript.batch.get(one.asked.call)
        recorded = waiting.decision if waiting else None
        if recorded is not None and (allowed := self._recorded(one, recorded)) is not None:
            return allowed
        problem = ""
        while True:
            answer = await self._control.answer_to(_question(one, rule, problem), one.asked.call, turn)
            settled = self._take(one, answer, turn)
            if not isinstance(settled, str):
                return settled
            problem = settled

    def _recorded(self, one: Ready, body: kinds.RunContinued) -> Ready | Result | None:
        """What was decided before another worker took over; None if that cannot be carried out any more."""
        if body.decision == "deny":
            return _denied(body.by or "a person", body.reason)
        if body.decision == "approve":
            return one
        if body.altered or body.args is None:
            return None
        try:
            return self._edited(one, body.args, body.args, body.by or "a person")
        except ToolError:
            return None

    def _take(self, one: Ready, answer: Command, turn: int) -> Ready | Result | str:
        """Write the decision down and carry it out; a text says why it could not be taken, and it is asked again."""
        decision = str(answer.args.get("decision") or "")
        reason = make_safe(str(answer.args.get("reason") or answer.reason or "")).text or None
        by = answer.by
        args: str | None = None
        altered = None
        settled: Ready | Result | str
        if decision == "approve":
            settled = one
        elif decision == "deny":
            settled = _denied(by, reason)
        elif decision == "edit":
            raw = json.dumps(answer.args.get("args"), ensure_ascii=False)
            safe = safe_args(raw)
            args, altered = safe.text, safe.altered
            try:
                settled = self._edited(one, raw, safe.text, by)
            except ToolError as error:
                settled = make_safe(error.message).text
        else:
            settled = "the answer was no decision: approve, edit or deny"
        problem = settled if isinstance(settled, str) else None
        self._journal.write(
            kinds.RunContinued(
                decision=decision or None, by=by, reason=reason, args=args, problem=problem, altered=altered
            ),
            turn=turn,
            call=one.asked.call,
        )
        return settled

    def _edited(self, one: Ready, raw: str, shown: str, by: str) -> Ready:
        """The call with other arguments, checked as the model's own are. Raises ToolError."""
        if has_marker(raw):
            raise ToolError(
                "The arguments hold a marker in place of a secret, which would be taken as it stands. Approve the call "
                "as it is, write the real value, or deny it.",
                kind="bad_args",
            )
        args = parse_args(one.tool.spec, raw)
        try:
            paths = self._resolve(one.tool, args)
        except Exception as error:
            raise ToolError(f"The arguments name no usable path ({error}).", kind="bad_args") from error
        note = f"[{by} changed the arguments of this call before it ran: {cut(shown, 2000)[0]}]"
        return replace(one, asked=replace(one.asked, args=shown), args=args, paths=paths, note=note)


def _question(one: Ready, rule: Rule, problem: str) -> kinds.RunWaiting:
    text = f"{one.asked.name}{_telling(one.args)} ({rule.told()})"
    if problem:
        text = f"{problem}\n{text}"
    return kinds.RunWaiting(
        reason="approval",
        call=one.asked.call,
        text=make_safe(text).text,
        name=one.asked.name,
        args=cut(one.asked.args, SHOWN_ARGS)[0],
    )


def _telling(args: Mapping[str, Any]) -> str:
    """The first text among the arguments, as one line: it says most."""
    first = next((value for value in args.values() if isinstance(value, str) and value.strip()), "")
    line = " ".join(first[: 4 * _LINE].split())
    return f" {line[:_LINE]}" if line else ""


def _denied(by: str, reason: str | None) -> Result:
    if by == "system":  # nobody said no: there is nobody
        text = f"Not run: this call needs a person to allow it, and nobody can be asked here. {reason or ''}".rstrip()
        return Result(status=CallStatus.DENIED, text=text)
    why = f"Reason: {reason}" if reason else "No reason was given."
    text = f"Not run: a person ({by}) denied this call. {why}\nDo not send it again as it is; go on without it, or ask."
    return Result(status=CallStatus.DENIED, text=text)
