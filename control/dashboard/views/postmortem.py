"""The page of a postmortem: what the log says, what people add to it, and the links by which others may read it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from control.accounts import audit
from control.accounts.roles import Actor, of_request
from control.dashboard import rooms
from control.dashboard.views.run import find
from control.incidents.models import Incident, Severity
from control.incidents.postmortem import editing, exports, shares
from control.incidents.postmortem.charts import Window, whole, window_of
from control.incidents.postmortem.document import KINDS, STATES, Document
from control.incidents.postmortem.filing import document_of
from control.incidents.postmortem.fold import NotFinished
from control.runs.models import Run

# Texts that are read beside the log; the title stands in the header and the factors have a card of their own.
PROSE = ("summary", "trigger", "detection", "resolution", "well", "badly", "lucky", "links")
# A link's secret is shown once, on the page that follows its making.
_FRESH = "postmortem-link"
# A text that could not be saved comes back on the page.
_UNSAVED = "postmortem-unsaved"


@login_required
def page(request: HttpRequest, run_id: str) -> HttpResponse:
    """`?from=` and `?to=` (milliseconds since the run began) show a part of the picture; `?part=picture` it alone."""
    run = find(run_id)
    try:
        document = document_of(run, request.build_absolute_uri("/"))
    except NotFinished:
        return _too_soon(request, run)
    window = window_of(document.report, _number(request, "from"), _number(request, "to"))
    context = {
        **exports.shown(document, window),
        "run": run,
        "link": reverse("run", kwargs={"run_id": run.pk}),
        "zoom": _zoom(document, window),
        "section": "incidents",
    }
    if request.GET.get("part") == "picture":
        return render(request, "incidents/postmortem/_zoom.html", context)
    now = timezone.now()
    context |= {
        "closed": document.written.state == "closed",
        "states": STATES,
        "severities": Severity.values,
        "kinds": KINDS,
        "texts": [one for one in context["sheet"].sections if one.name in PROSE],
        "incidents": Incident.objects.filter(run_id=run.pk).order_by("-opened_at")[:5],
        "history": editing.history(run.pk, 40),
        "shares": [{"row": row, "good": _is_good(row, now)} for row in shares.listed(run.pk, now)],
        "hours": shares.HOURS,
        "fresh": request.session.pop(f"{_FRESH}:{run.pk}", None),
        "unsaved": request.session.pop(f"{_UNSAVED}:{run.pk}", None),
    }
    return render(request, "incidents/postmortem/page.html", context)


def _too_soon(request: HttpRequest, run: Run) -> HttpResponse:
    context = {
        "title": "No postmortem yet",
        "text": "This run has not ended. Its postmortem is here as soon as its log has a last event.",
        "back": reverse("run", kwargs={"run_id": run.pk}),
        "back_word": "To the run",
    }
    return render(request, "problem.html", context, status=409)


def _number(request: HttpRequest, name: str) -> int | None:
    given = request.GET.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 13 else None


def _zoom(document: Document, window: Window) -> dict[str, Any]:
    """Where the buttons lead, as queries; the picture's own bounds in milliseconds for the script."""
    all_of_it = whole(document.report)
    long = int(all_of_it.seconds * 1000)
    start = int((window.start - all_of_it.start).total_seconds() * 1000)
    wide = max(int(window.seconds * 1000), 1)

    def query(at: int, width: int) -> str:
        width = max(min(width, long), 1)
        at = max(0, min(at, long - width))
        return f"from={at}&to={at + width}"

    return {
        "start": start,
        "end": start + wide,
        "whole": wide >= long,
        "closer": query(start + wide // 4, wide // 2),
        "wider": query(start - wide // 2, wide * 2),
        "earlier": query(start - wide // 2, wide),
        "later": query(start + wide // 2, wide),
        "words": f"{window.start:%H:%M:%S} – {window.end:%H:%M:%S} UTC",
    }


def _is_good(row: Any, now: datetime) -> bool:
    return row.revoked_at is None and row.expires_at > now


# --- what people do --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One act on one postmortem."""

    request: HttpRequest
    run: Run
    actor: Actor
    now: datetime

    def given(self, name: str) -> str:
        return self.request.POST.get(name, "")

    @property
    def who(self) -> dict[str, Any]:
        return {"by": self.actor.name, "now": self.now}


@login_required
def act(request: HttpRequest, run_id: str, act: str) -> HttpResponse:
    """One change. Read, the address leads back to the page; an error keeps the text on it."""
    run = find(run_id)
    back = reverse("postmortem", kwargs={"run_id": run.pk})
    if request.method != "POST":
        return redirect(back)
    verb = "share_postmortem" if act in ("share", "revoke") else "write_postmortem"
    target = f"run:{run.pk}"
    refusal = rooms.refused(request, verb, target, back)
    if refusal is not None:
        return refusal
    actor = of_request(request)
    assert actor is not None
    asked = _Asked(request=request, run=run, actor=actor, now=timezone.now())
    try:
        said, where = _ACTS[act](asked)
    except editing.Refused as error:
        audit.record(request, verb, target, filter={"act": act}, result=error.code)
        messages.error(request, error.message)
        if act == "section":
            request.session[f"{_UNSAVED}:{run.pk}"] = {"section": asked.given("section"), "text": asked.given("text")}
        return redirect(back)
    audit.record(request, verb, target, filter={"act": act}, after={"said": said} if said else None)
    if said:
        messages.success(request, said)
    return redirect(f"{back}#{where}" if where else back)


def _section(asked: _Asked) -> tuple[str, str]:
    name, number = asked.given("section"), asked.given("number")
    if not number.isdigit():
        raise editing.Refused("no_number", "Say which revision the text was made from.")
    changed = editing.write(asked.run, name, asked.given("text"), number=int(number[:9]), **asked.who)
    return ("Saved." if changed else "Nothing has changed."), f"pm-{name}"


def _state(asked: _Asked) -> tuple[str, str]:
    state = asked.given("state")
    changed = editing.move(asked.run, state, **asked.who)
    return (f"The postmortem is {STATES[state]} now." if changed else "It is so already."), ""


def _head(asked: _Asked) -> tuple[str, str]:
    changed = editing.head(
        asked.run,
        owner=asked.given("owner"),
        severity=asked.given("severity"),
        due=asked.given("due"),
        **asked.who,
    )
    return ("Saved." if changed else "Nothing has changed."), ""


def _factors(asked: _Asked) -> tuple[str, str]:
    post = asked.request.POST
    changed = editing.factors(
        asked.run,
        proposed=post.getlist("proposed"),
        stand=post.getlist("stands"),
        added=[*post.getlist("added"), *asked.given("more").splitlines()],
        **asked.who,
    )
    return ("Saved." if changed else "Nothing has changed."), "pm-factors"


def _action(asked: _Asked) -> tuple[str, str]:
    editing.add_action(
        asked.run,
        kind=asked.given("kind"),
        text=asked.given("text"),
        owner=asked.given("owner"),
        link=asked.given("link"),
        due=asked.given("due"),
        **asked.who,
    )
    return "The action item is there.", "pm-actions"


def _finish(asked: _Asked) -> tuple[str, str]:
    done = asked.given("done") == "1"
    changed = editing.finish_action(asked.run, asked.given("action"), done=done, now=asked.now)
    return ("Done." if done else "Open again.") if changed else "Nothing has changed.", "pm-actions"


def _drop(asked: _Asked) -> tuple[str, str]:
    changed = editing.drop_action(asked.run, asked.given("action"), **asked.who)
    return ("The action item is gone." if changed else "Nothing has changed."), "pm-actions"


def _share(asked: _Asked) -> tuple[str, str]:
    hours = asked.given("hours")
    try:
        given = int(hours) if hours.isdigit() and len(hours) < 6 else 0
        row, secret = shares.make(asked.run.pk, hours=given, note=asked.given("note"), **asked.who)
    except ValueError as error:
        raise editing.Refused("bad_hours", str(error)) from error
    except shares.TooMany as error:
        raise editing.Refused("too_many", "There are too many open links. Revoke some first.") from error
    path = reverse("postmortem_shared", kwargs={"secret": secret})
    asked.request.session[f"{_FRESH}:{asked.run.pk}"] = asked.request.build_absolute_uri(path)
    return f"The link works until {row.expires_at:%Y-%m-%d %H:%M} UTC. It is shown once.", "pm-shares"


def _revoke(asked: _Asked) -> tuple[str, str]:
    changed = shares.revoke(asked.run.pk, asked.given("share"), **asked.who)
    return ("The link works no more." if changed else "That link was over already."), "pm-shares"


_ACTS: dict[str, Callable[[_Asked], tuple[str, str]]] = {
    "section": _section,
    "state": _state,
    "head": _head,
    "factors": _factors,
    "action": _action,
    "finish": _finish,
    "drop": _drop,
    "share": _share,
    "revoke": _revoke,
}
ACTS = "|".join(_ACTS)


# --- for those outside -----------------------------------------------------------------------------------------------


def shared(request: HttpRequest, secret: str) -> HttpResponse:
    """The postmortem as a file, without links into the console, to whoever has a good link."""
    run_id = shares.opened(secret, timezone.now())
    run = Run.objects.filter(pk=run_id).first() if run_id is not None else None
    if run is None:
        raise Http404("This link leads nowhere, or no longer.")
    try:
        document = document_of(run)
    except NotFinished:
        raise Http404("This link leads nowhere, or no longer.") from None
    answer = HttpResponse(exports.as_html(document))
    answer["Content-Security-Policy"] = f"{exports.policy()}; frame-ancestors 'none'"
    answer["Cache-Control"] = "no-store"
    answer["Referrer-Policy"] = "no-referrer"
    answer["X-Robots-Tag"] = "noindex"
    return answer
