"""Replays in the window: ask for one, and see how it compares with the run that it plays; a run as a test."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agents.spec import FINAL
from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import rooms
from control.dashboard.views.run import find
from control.fleet.models import Policy
from control.incidents import regression, replaying
from control.runs import replays
from control.runs.models import Run
from control.runs.refusals import StartRefused

_FINAL = frozenset(status.value for status in FINAL)
_TEXTS = ("base_url", "model", "credential", "branch")
LISTED = 20


@login_required
def page(request: HttpRequest, run_id: str) -> HttpResponse:
    """For an ended run the form and its replays; for a replay how far it is the same, and where it parts."""
    run = find(run_id)
    problem, typed = "", dict.fromkeys((*_TEXTS, "policy", "from_turn", "live"), "")
    if request.method == "POST":
        if answer := rooms.refused(request, "replay", f"run:{run.pk}", f"/runs/{run.pk}/replay"):
            return answer
        typed = {name: request.POST.get(name, "").replace("\x00", "").strip()[:500] for name in typed}
        made, problem = _made(request, run, typed)
        if made is not None:
            messages.success(request, "The replay is queued.")
            return redirect("run_replay", run_id=made.pk)
    context = {
        "section": "fleet",
        "run": run,
        "compared": replaying.compare(run),
        "beside": replaying.beside(run),
        "original": Run.objects.filter(pk=run.replay_of).first() if run.replay_of else None,
        "replays": list(Run.objects.filter(replay_of=run.pk).order_by("-created_at").defer("spec", "final")[:LISTED]),
        "final": run.status in _FINAL,
        "policies": list(Policy.objects.filter(current=True).order_by("name").values_list("name", flat=True)),
        "typed": typed,
        "problem": problem,
        "may_ask": rooms.may(request, "replay"),
    }
    return render(request, "runs/replay.html", context, status=400 if problem else 200)


def _made(request: HttpRequest, run: Run, typed: dict[str, str]) -> tuple[Run | None, str]:
    """The replay, or what is wrong with the form."""
    turn, live = typed["from_turn"], bool(typed["live"])
    if turn and not (turn.isascii() and turn.isdigit() and len(turn) < 7):
        return None, "The turn is a number."
    # Fields of a live replay that is not asked for are left alone.
    given: dict[str, Any] = {name: typed[name] or None for name in _TEXTS} if live else {}
    wanted = replays.Replay(
        policy=typed["policy"] or None,
        from_turn=int(turn) if turn else None,
        live=live,
        dry_run=not (live and request.POST.get("real")),
        **given,
    )
    actor = of_request(request)
    assert actor is not None
    after = {"live": live, "policy": wanted.policy, "credential": wanted.credential, "dry_run": wanted.dry_run}
    try:
        made = replays.replay(run.pk, wanted, by=actor.name)
    except StartRefused as error:
        audit.record(request, "replay", f"run:{run.pk}", after=after, result=error.code)
        return None, error.message
    audit.record(request, "replay", f"run:{run.pk}", after={"run": made.pk, **after})
    return made, ""


@login_required
def test(request: HttpRequest, run_id: str) -> HttpResponse:
    """The run as a regression test, in one file."""
    run = find(run_id)
    try:
        made = regression.export(run, request.GET.get("policy", "")[:100] or None)
    except StartRefused as error:
        context = {
            "title": "No test",
            "text": error.message,
            "back": f"/runs/{run.pk}/",
            "back_word": "Back to the run",
        }
        return render(request, "problem.html", context, status=409)
    response = HttpResponse(made.zipped(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{made.name}.zip"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
