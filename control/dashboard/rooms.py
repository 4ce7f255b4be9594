"""What the pages of workers, credentials, agents, audit and account have in common: who may, and how one is told."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from control.accounts import audit
from control.accounts.models import Role
from control.accounts.roles import NEEDED, of_request

WHO = {Role.VIEWER: "anybody who may sign in", Role.OPERATOR: "an operator", Role.ADMIN: "an admin"}


def may(request: HttpRequest, verb: str) -> bool:
    actor = of_request(request)
    return bool(actor and actor.may(verb))


def refused(request: HttpRequest, verb: str, target: str, back: str) -> HttpResponse | None:
    """None if the viewer may; else the page that says who may, and a line in the audit trail."""
    if may(request, verb):
        return None
    audit.record(request, verb, target, result="forbidden")
    context = {
        "title": "Not allowed",
        "text": f"Your role does not cover this. Ask {WHO[NEEDED[verb]]}.",
        "back": back,
        "back_word": "Back",
    }
    return render(request, "problem.html", context, status=403)


def told(request: HttpRequest, text: str, to: str, *, good: bool = True) -> HttpResponse:
    """A notice on the page that follows."""
    (messages.success if good else messages.error)(request, text)
    return redirect(to)
