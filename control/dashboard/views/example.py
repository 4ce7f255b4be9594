"""The guided example: one button, and the night of the postmortem happens before one's eyes."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import rooms
from control.dashboard.views.run import find
from control.incidents import clearing, example, routes
from control.runs.clock import database_now
from control.runs.refusals import StartRefused

# How soon the page looks again, in milliseconds: while something is to come, and when all is there.
_SOON, _LATE = 1_000, 30_000


@login_required
def page(request: HttpRequest) -> HttpResponse:
    """What happens at the press of the button, or why there is none; and the nights that were."""
    may_start = rooms.may(request, "start")
    context = {
        "section": "incidents",
        "may_start": may_start,
        "why_not": example.why_not() if may_start else "",
        "runs": example.runs(),
        "left": clearing.left(),
        "steps": example.STEPS,
        "policy": example.POLICY,
    }
    return render(request, "example/page.html", context)


@login_required
def start(request: HttpRequest) -> HttpResponse:
    """The route to the receiver of the drill server is made fit, and the run begins."""
    back = reverse("example")
    if answer := rooms.refused(request, "start", "run:new", back):
        return answer
    actor = of_request(request)
    assert actor is not None
    try:
        # It leads to the drill server's own receiver and takes this example's runs alone, so no admin is asked.
        route = example.route(actor.name, database_now())
        audit.record(request, "write_route", f"route:{route.pk}", after=routes.row(route))
        run = example.start(actor.name)
    except example.NoDrill as error:
        audit.record(request, "start", "run:none", result="no_drill")
        return rooms.told(request, str(error), back, good=False)
    except (StartRefused, routes.BadRoute) as error:
        audit.record(request, "start", "run:none", result=error.code)
        return rooms.told(request, error.message, back, good=False)
    audit.record(request, "start", f"run:{run.pk}", after={"agent": run.agent, "example": "night"})
    return redirect("example_run", run_id=run.pk)


@login_required
def clear(request: HttpRequest) -> HttpResponse:
    """All that the example has made is taken away again."""
    back = reverse("example")
    if answer := rooms.refused(request, "start", "example:night", back):
        return answer
    try:
        gone = clearing.clear()
    except clearing.UnderWay as error:
        audit.record(request, "clear_example", "example:night", result="under_way")
        return rooms.told(request, str(error), back, good=False)
    audit.record(request, "clear_example", "example:night", after=gone)
    return rooms.told(request, "All that the example had made is gone; the audit trail keeps that it was.", back)


@login_required
def one(request: HttpRequest, run_id: object) -> HttpResponse:
    """One night, step by step; it looks again by itself. Other runs have a page of their own."""
    run = find(str(run_id))
    if run.project != example.PROJECT:
        return redirect("run", run_id=run.pk)
    night = example.night(run)
    where = {
        "started": (reverse("run", kwargs={"run_id": run.pk}), "Watch the run"),
        "tripped": (reverse("run", kwargs={"run_id": run.pk}), "The run"),
        "incident": (reverse("incident", args=[night.incident.pk]) if night.incident else "", "The incident"),
        "webhook": (reverse("alert_route", args=[night.delivery.route.pk]) if night.delivery else "", "The route"),
        "postmortem": (reverse("postmortem", kwargs={"run_id": run.pk}), "The postmortem"),
        "earlier": (reverse("policies"), "Policies"),
    }
    context: dict[str, Any] = {
        "section": "incidents",
        "run": run,
        "night": night,
        "steps": [{"step": step, "href": where[step.name][0], "link": where[step.name][1]} for step in night.steps],
        "letter": night.letters[-1] if night.letters else None,
        "every": _LATE if night.over else _SOON,
        "may_start": rooms.may(request, "start"),
    }
    return render(request, "example/one.html", context)
