"""The page that starts a run."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import rooms
from control.dashboard.forms import StartForm
from control.runs import starts


@login_required
def page(request: HttpRequest) -> HttpResponse:
    """The form; after a refusal it comes back with everything that was typed."""
    if answer := rooms.refused(request, "start", "run:new", "/"):
        return answer
    actor = of_request(request)
    assert actor is not None
    if request.method != "POST":
        form = StartForm(initial={"agent": "default", **request.GET.dict()})
        return render(request, "runs/start.html", {"form": form, "section": "start"})
    form = StartForm(request.POST)
    if form.is_valid():
        try:
            run = starts.start(starts.StartRequest(**form.request()), by=actor.name)
        except starts.StartRefused as refused:
            form.refuse(refused.code, refused.message, refused.detail)
            audit.record(request, "start", "run:none", result=refused.code)
            return render(request, "runs/start.html", {"form": form, "section": "start"}, status=refused.status)
        audit.record(request, "start", f"run:{run.pk}", after={"agent": run.agent})
        messages.success(request, "Started.")
        return redirect("run", run_id=run.pk)
    return render(request, "runs/start.html", {"form": form, "section": "start"}, status=400)
