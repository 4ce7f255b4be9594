"""Going on from an ended run: a plain form that leads to the new run."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import rooms
from control.dashboard.views.run import find
from control.dashboard.views.verbs import NOTE_LONGEST
from control.runs import forks
from control.runs.refusals import StartRefused


@login_required
def fork(request: HttpRequest, run_id: str) -> HttpResponse:
    """`turn` is the last turn of the history; left out it is the run's last."""
    run = find(run_id)
    if request.method != "POST":
        return redirect("run", run_id=run.pk)
    if answer := rooms.refused(request, "fork", f"run:{run.pk}", f"/runs/{run.pk}/"):
        return answer
    actor = of_request(request)
    assert actor is not None
    turn = request.POST.get("turn", "").strip()
    wanted = int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 7 else None
    # The field shows the last turn: from there the files are those of the end, not of a moment before.
    wanted = None if wanted == run.turns else wanted
    note = request.POST.get("note", "").replace("\x00", "").strip()[:NOTE_LONGEST]
    try:
        made = forks.fork(run.pk, by=actor.name, turn=wanted, note=note or None)
    except StartRefused as refused:
        audit.record(request, "fork", f"run:{run.pk}", result=refused.code)
        messages.error(request, refused.message)
        return redirect("run", run_id=run.pk)
    audit.record(request, "fork", f"run:{run.pk}", after=made.command.args)
    messages.success(request, "Forked: this run goes on from there.")
    return redirect("run", run_id=made.run.pk)
