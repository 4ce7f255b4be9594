"""Routes of commands: interrupt, steer, pause, unpause, answer, raise; their receipts; withdrawing a waiting one."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from agents.commands import CommandKind, Scope
from agents.policy.redaction import make_safe
from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import ApiError, not_found
from control.api.finding import find_command
from control.api.outputs import ChangedOut, CommandOut, ForkedOut, IssuedOut
from control.api.receipts import describe
from control.api.schemas import AnswerIn, ForkIn, InterruptIn, PauseIn, RaiseIn, SteerIn, UnpauseIn
from control.runs import forks, inbox, waits
from control.runs.selection import as_id

router = Router(tags=["commands"])
ISSUED = {200: IssuedOut, 202: IssuedOut}
# Answers that the run cannot take.
UNFIT = {
    "not_waiting": "The run does not wait for this call. Its run.waiting event names the call that it waits for.",
    "needs_decision": "This call waits for an approval: give `decision` approve, edit (with `args`) or deny.",
    "needs_text": "This call asks a question: give `text`.",
}


def issue(
    run_id: str,
    kind: CommandKind,
    *,
    by: str,
    scope: Scope = Scope.RUN,
    reason: str | None = None,
    args: Mapping[str, Any] | None = None,
) -> Done:
    """Issue one command; the same for the API and the command line. Raises ApiError or the inbox's refusals."""
    known = as_id(run_id)
    if known is None:
        raise not_found("run", run_id)
    try:
        issued = inbox.issue(run_id=known, kind=kind, by=by, scope=scope, reason=reason, args=dict(args or {}))
    except inbox.NotFound as error:
        raise not_found("run", run_id) from error
    except inbox.RunFinished:
        if kind is not CommandKind.INTERRUPT:
            raise
        return Done(body={"command": None, "changed": False, "reason": "already_finished"}, status=200)
    if issued.reason in UNFIT:
        raise ApiError(issued.reason, UNFIT[issued.reason], status=409)
    command = issued.command.pk if issued.command else None
    body = {"command": command, "changed": issued.changed, "reason": issued.reason}
    finished = kind is CommandKind.INTERRUPT and issued.reason == "already_finished"
    result = "ok" if issued.changed else issued.reason or "unchanged"
    return Done(body=body, status=200 if finished else 202, result=result, after={"command": command, "args": args})


def _act(request: HttpRequest, run_id: str, kind: CommandKind, **given: Any) -> HttpResponse:
    act = Act(action=kind.value, target=f"run:{run_id[:60]}", reason=given.get("reason"))
    return perform(request, act, lambda: issue(run_id, kind, by=actor_of(request).name, **given))


@router.post("/runs/{run_id}/interrupt", auth=Needs("interrupt"), response=ISSUED, summary="Stop a run with sub-agents")
def interrupt(request: HttpRequest, run_id: str, payload: InterruptIn | None = None) -> HttpResponse:
    """202 with the command; 200 `already_finished` if there is nothing left to stop. Pressing again signals again."""
    asked = payload or InterruptIn()
    return _act(request, run_id, CommandKind.INTERRUPT, scope=Scope(asked.scope), reason=asked.reason)


@router.post("/runs/{run_id}/steer", auth=Needs("steer"), response=ISSUED, summary="Give a run a note")
def steer(request: HttpRequest, run_id: str, payload: SteerIn) -> HttpResponse:
    """The note joins the conversation at the next turn border; it never disturbs the running batch."""
    return _act(request, run_id, CommandKind.STEER, args=steer_args(payload.note))


def steer_args(note: str) -> dict[str, Any]:
    if not note.strip():
        raise ApiError("empty_note", "A note needs some text.", status=400)
    return _safe("note", note)


def _safe(name: str, text: str) -> dict[str, Any]:
    """The text as every database can hold it, secrets hidden; `altered` counts what was replaced."""
    safe = make_safe(text)
    return {name: safe.text} | ({"altered": safe.altered} if safe.altered else {})


@router.post("/runs/{run_id}/pause", auth=Needs("pause"), response=ISSUED, summary="Pause a run")
def pause(request: HttpRequest, run_id: str, payload: PauseIn | None = None) -> HttpResponse:
    asked = payload or PauseIn()
    return _act(request, run_id, CommandKind.PAUSE, reason=asked.reason, args={"when": asked.when})


@router.post("/runs/{run_id}/unpause", auth=Needs("unpause"), response=ISSUED, summary="Let a paused run go on")
def unpause(request: HttpRequest, run_id: str, payload: UnpauseIn | None = None) -> HttpResponse:
    return _act(request, run_id, CommandKind.UNPAUSE, reason=payload.reason if payload else None)


@router.post("/runs/{run_id}/answer", auth=Needs("answer"), response=ISSUED, summary="Answer a question or an approval")
def answer_call(request: HttpRequest, run_id: str, payload: AnswerIn) -> HttpResponse:
    """Either `text` for a question, or `decision` (with `args` for `edit`) for an approval."""
    return _act(request, run_id, CommandKind.ANSWER, reason=payload.reason, args=answer_to(run_id, payload))


def answer_args(asked: AnswerIn) -> dict[str, Any]:
    if (asked.text is None) == (asked.decision is None):
        raise ApiError("bad_answer", "Give either `text` or `decision`, one of the two.", status=422)
    if (asked.decision == "edit") != (asked.args is not None):
        raise ApiError("bad_answer", "`args` belongs to `decision: edit`, and only there.", status=422)
    if asked.text is not None and not asked.text.strip():
        raise ApiError("bad_answer", "The answer needs some text.", status=422)
    if asked.text is not None:
        return {"call": asked.call} | _safe("text", asked.text)
    given = {"call": asked.call, "decision": asked.decision, "args": asked.args, "reason": asked.reason}
    return {name: value for name, value in given.items() if value is not None}


def answer_to(run_id: str, asked: AnswerIn) -> dict[str, Any]:
    """The same, edited arguments checked against the tool while there is somebody to mend them."""
    args = answer_args(asked)
    if asked.decision == "edit":
        known = as_id(run_id)
        why = waits.unfit(known, asked.call, asked.args) if known else None
        if why is not None:
            raise ApiError("bad_args", why, status=422)
    return args


@router.post("/runs/{run_id}/raise", auth=Needs("raise"), response=ISSUED, summary="Raise a run's limits")
def raise_limits(request: HttpRequest, run_id: str, payload: RaiseIn) -> HttpResponse:
    limits = payload.limits.given()
    return _act(request, run_id, CommandKind.RAISE, reason=payload.reason, args=raise_args(limits))


def raise_args(limits: Mapping[str, str]) -> dict[str, Any]:
    if not limits:
        raise ApiError("no_limits", 'Name at least one limit, e.g. {"max_cost": "5.00"}.', status=422)
    return {"limits": dict(limits)}


@router.post("/runs/{run_id}/fork", auth=Needs("fork"), response={202: ForkedOut}, summary="Go on from an ended run")
def fork(request: HttpRequest, run_id: str, payload: ForkIn | None = None) -> HttpResponse:
    """A new run with the history up to `turn` and the note as the next word; its fuses start fresh. 409 `run_active`,
    `workspace_gone`, 400 `no_such_turn`, 423 `starts_blocked`."""
    asked = payload or ForkIn()
    act = Act(action="fork", target=f"run:{run_id[:60]}")
    return perform(request, act, lambda: forked(run_id, by=actor_of(request).name, turn=asked.turn, note=asked.note))


def forked(run_id: str, *, by: str, turn: int | None, note: str | None) -> Done:
    """The same for the API and the command line."""
    known = as_id(run_id)
    if known is None:
        raise not_found("run", run_id)
    try:
        made = forks.fork(known, by=by, turn=turn, note=note)
    except inbox.NotFound as error:
        raise not_found("run", run_id) from error
    body = {"command": made.command.pk, "changed": True, "reason": None, "run": made.run.pk}
    return Done(body={**body, "url": f"/runs/{made.run.pk}/"}, after=made.command.args)


# --- one command --------------------------------------------------------------------------------------------


@router.get("/commands/{command_id}", auth=Needs("view"), response=CommandOut, summary="How far a command has come")
def show(request: HttpRequest, command_id: str) -> HttpResponse:
    """State with times, for every run of the tree that the command reaches. Requested is not done."""
    return answer(describe(find_command(command_id)))


@router.delete("/commands/{command_id}", auth=Needs("withdraw"), response=ChangedOut, summary="Withdraw a command")
def withdraw(request: HttpRequest, command_id: str) -> HttpResponse:
    act = Act(action="withdraw", target=f"command:{command_id[:60]}")
    return perform(request, act, lambda: withdraw_command(command_id, by=actor_of(request).name))


def withdraw_command(command_id: str, *, by: str) -> Done:
    """200 `{changed}`: false with a reason once the command is under way or over."""
    command = find_command(command_id)
    outcome = inbox.withdraw(command.pk, by)
    changed = outcome.changed
    body = {"changed": changed, "reason": outcome.reason}
    return Done(body=body, status=200, result="ok" if changed else outcome.reason or "unchanged")
