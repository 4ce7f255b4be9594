"""The verbs as plain forms: each becomes one command, and one line in the audit trail."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone

from agents.commands import CommandKind, Scope
from agents.errors import AgentError
from agents.policy.redaction import make_safe
from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import asks, side
from control.dashboard.views.run import find
from control.runs import inbox, limits, waits
from control.runs.models import Command, Run

NOTE_LONGEST = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of an act, for the person who asked: `ok` or a stable code, and a sentence with the next step."""

    text: str
    code: str = "ok"
    status: int = 202

    @property
    def good(self) -> bool:
        return self.status < 400


DECIDED = {"approve": "Approved.", "edit": "Approved with your arguments.", "deny": "Denied."}
# A run that is held has to agree first.
WITHDRAWN = {None: "Withdrawn.", "requested": "Withdrawal requested."}
FORBIDDEN = Told(code="forbidden", status=403, text="Your role may look, not act. Ask an operator.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A command as the form asked for it."""

    kind: CommandKind
    scope: Scope = Scope.RUN
    reason: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    done: str = ""


Read = Callable[[HttpRequest], Wish | Told]


def _said(text: str) -> str:
    """What a person typed, as every database can hold it, with secrets hidden."""
    return make_safe(text).text.strip()


def _interrupt(request: HttpRequest) -> Wish | Told:
    reason = _said(request.POST.get("reason", ""))[:500] or None
    return Wish(kind=CommandKind.INTERRUPT, scope=Scope.SUBTREE, reason=reason, done="Stop requested.")


def _steer(request: HttpRequest) -> Wish | Told:
    note = _said(request.POST.get("note", ""))
    if not note:
        return Told(code="empty_note", status=400, text="A note needs some text.")
    if len(note) > NOTE_LONGEST:
        return Told(code="note_too_long", status=400, text=f"A note may have {NOTE_LONGEST:,} characters.")
    return Wish(kind=CommandKind.STEER, args={"note": note}, done="Note queued.")


def _pause(request: HttpRequest) -> Wish | Told:
    when = request.POST.get("when", "after_batch")
    if when not in ("after_batch", "before_call"):
        return Told(code="bad_when", status=400, text="Pause after the batch or before the next call.")
    return Wish(kind=CommandKind.PAUSE, args={"when": when}, done="Pause requested.")


def _unpause(request: HttpRequest) -> Wish | Told:
    return Wish(kind=CommandKind.UNPAUSE, done="Asked to go on.")


def _raise(request: HttpRequest) -> Wish | Told:
    """One fuse (`fuse`) to a new limit (`limit`), with the reason that the log keeps."""
    name, value = request.POST.get("fuse", ""), request.POST.get("limit", "").strip()[:40]
    reason = _said(request.POST.get("raise-reason", ""))[:500]
    if not reason:
        return Told(code="no_reason", status=400, text="Say why it is raised: it stands in the log.")
    try:
        known = limits.read({name: value}, "raised")
    except limits.BadLimits as error:
        return Told(code="bad_limits", status=400, text=str(error))
    raised = {name: format(limit.value, "f") for name, limit in known.items()}
    return Wish(kind=CommandKind.RAISE, reason=reason, args={"limits": raised}, done="Asked to raise it.")


def _answer(request: HttpRequest) -> Wish | Told:
    """A choice (`choose=call:text`), a decision (`decide=call:approve`) or free text (`call=…` with `text-<call>`)."""
    post = request.POST
    if "decide" in post:
        return _decision(post)
    call, _, text = post.get("choose", "").partition(":")
    if not call:
        call = post.get("call", "")
        text = post.get(f"text-{call}", "") or post.get("text", "")
    text = _said(text)
    if not call or not text:
        return Told(code="bad_answer", status=400, text="The answer needs some text.")
    return Wish(kind=CommandKind.ANSWER, args={"call": _said(call), "text": text[:NOTE_LONGEST]}, done="Answer sent.")


def _decision(post: QueryDict) -> Wish | Told:
    """Approve, deny with `reason-<call>`, or edit with the JSON object in `args-<call>`."""
    call, _, decision = post.get("decide", "").partition(":")
    if decision not in DECIDED:
        return Told(code="bad_answer", status=400, text="Approve, edit or deny.")
    args: dict[str, Any] = {"call": _said(call), "decision": decision}
    reason = _said(post.get(f"reason-{call}", ""))[:500] or None
    if reason and decision == "deny":
        args["reason"] = reason
    if decision == "edit":
        try:
            args["args"] = json.loads(post.get(f"args-{call}", ""), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            return Told(code="bad_args", status=400, text=f"The arguments are no valid JSON: {error}.")
        if not isinstance(args["args"], dict):
            return Told(code="bad_args", status=400, text="The arguments are one JSON object, in braces.")
    return Wish(kind=CommandKind.ANSWER, reason=args.get("reason"), args=args, done=DECIDED[decision])


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


READERS: dict[str, Read] = {
    "interrupt": _interrupt,
    "steer": _steer,
    "pause": _pause,
    "unpause": _unpause,
    "answer": _answer,
    "raise": _raise,
}


@login_required
def act(request: HttpRequest, run_id: str, verb: str) -> HttpResponse:
    """One verb on one run. GET on interrupt is the page that asks for a reason; the rest only take POST."""
    run = find(run_id)
    if request.method != "POST":
        if verb == "interrupt":
            return _interrupt_page(request, run)
        return redirect("run", run_id=run.pk)
    actor = of_request(request)
    if actor is None or not actor.may(verb):
        audit.record(request, verb, f"run:{run.pk}", result="forbidden")
        return _say(
            request, run, Told(code="forbidden", status=403, text="Your role may look, not act. Ask an operator.")
        )
    wish = READERS[verb](request)
    told = wish if isinstance(wish, Told) else _issue(run, wish, actor.name)
    reason = wish.reason if isinstance(wish, Wish) else None
    # Arguments that were refused may hold what no database does.
    after = dict(wish.args) if isinstance(wish, Wish) and told.code != "bad_args" else None
    audit.record(request, verb, f"run:{run.pk}", reason=reason, after=after, result=told.code)
    return _say(request, run, told)


@login_required
def withdraw(request: HttpRequest, run_id: str) -> HttpResponse:
    """Take back a note that the model has not read yet."""
    run = find(run_id)
    if request.method != "POST":
        return redirect("run", run_id=run.pk)
    actor = of_request(request)
    command = Command.objects.filter(pk=request.POST.get("command", ""), run_id=run.pk).first()
    if actor is None or not actor.may("withdraw"):
        told = FORBIDDEN
    elif command is None:
        told = Told(code="unknown_command", status=404, text="There is no such note on this run.")
    else:
        outcome = inbox.withdraw(command.pk, actor.name)
        told = Told(text=WITHDRAWN[outcome.reason]) if outcome.changed else Told(
            code=outcome.reason or "unchanged", status=200, text=f"Not withdrawn: {_words(outcome.reason)}."
        )  # fmt: skip
    audit.record(request, "withdraw", f"run:{run.pk}", after={"command": command and command.pk}, result=told.code)
    return _say(request, run, told)


def _issue(run: Run, wish: Wish, by: str) -> Told:
    if wish.args.get("decision") == "edit":
        why = waits.unfit(run.pk, str(wish.args["call"]), wish.args["args"])
        if why is not None:
            return Told(code="bad_args", status=422, text=why)
    try:
        issued = inbox.issue(
            run_id=run.pk, kind=wish.kind, by=by, scope=wish.scope, reason=wish.reason, args=dict(wish.args)
        )
    except inbox.RunFinished:
        late = wish.kind is not CommandKind.INTERRUPT
        return Told(
            code="run_finished" if late else "already_finished", status=409 if late else 200,
            text="The run has ended; nothing was changed." if late else "Already finished; there was nothing to stop.",
        )  # fmt: skip
    except inbox.NotFound:
        return Told(code="not_found", status=404, text="There is no run of this id.")
    except AgentError as error:
        return Told(code=error.kind, status=409, text=error.message)
    if issued.reason == "already_answered" and issued.command is not None:
        first = asks.answered(issued.command)
        text = f"{first.by} answered first: {first.says}. Yours was not sent."
        return Told(code="already_answered", status=200, text=text)
    if not issued.changed:
        return Told(code=issued.reason or "unchanged", status=200, text=f"Nothing changed: {_words(issued.reason)}.")
    return Told(text=wish.done)


def _words(code: str | None) -> str:
    return (code or "it was so already").replace("_", " ")


def _interrupt_page(request: HttpRequest, run: Run) -> HttpResponse:
    return render(request, "runs/interrupt.html", side.context_of(run, timezone.now()))


def _say(request: HttpRequest, run: Run, told: Told) -> HttpResponse:
    """JSON for the page's script, else a message on the page that the form came from."""
    if "application/json" in request.headers.get("Accept", ""):
        body: dict[str, Any] = {"code": told.code, "message": told.text}
        return JsonResponse(body if told.good else {"error": body}, status=told.status)
    took = told.good and told.code != "already_answered"
    (messages.success if took else messages.error)(request, told.text)
    if told.status == 403:
        context = {
            "title": "Not allowed",
            "text": told.text,
            "back": f"/runs/{run.pk}/",
            "back_word": "Back to the run",
        }
        return render(request, "problem.html", context, status=403)
    return redirect("inbox") if request.POST.get("from") == "inbox" else redirect("run", run_id=run.pk)
