"""The inbox: what all runs ask of people, answered, decided or put off where it is read."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from control.accounts import audit, snoozes
from control.accounts.roles import of_request
from control.dashboard import asks

TERMS = {"15m": "15 minutes", "1h": "an hour", "8h": "8 hours"}


def _context(request: HttpRequest) -> dict[str, Any]:
    now = timezone.now()
    found = asks.inbox(request.user, now)  # type: ignore[arg-type]
    return {"inbox": found, "wants": asks.wants(found.asks), "terms": TERMS, "now": now, "section": "inbox"}


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "inbox/inbox.html", _context(request))


@login_required
@require_safe
def changes(request: HttpRequest) -> HttpResponse:
    """How many wait for this person; with `list=1` also the list as it stands, and who answered what of late."""
    if "list" not in request.GET:
        return JsonResponse({"count": asks.count(request.user, timezone.now())})  # type: ignore[arg-type]
    context = _context(request)
    found: asks.Inbox = context["inbox"]
    html = render_to_string("inbox/_asks.html", context, request)
    return JsonResponse({"count": len(found.asks) + found.more, "html": html, "gone": found.gone})


@login_required
@require_POST
def snooze(request: HttpRequest) -> HttpResponse:
    """Not now, for this person alone; with `term=` left out: ask me again after all."""
    actor = of_request(request)
    call, term = request.POST.get("call", "").replace("\x00", "")[:36], request.POST.get("term", "")
    if actor is None or not call or (term and term not in snoozes.TERMS):
        audit.record(request, "snooze", f"call:{call}", result="bad_term")
        messages.error(request, "Choose for how long.")
        return redirect("inbox")
    now = timezone.now()
    if term:
        until = snoozes.put_off(request.user, call, term, now)  # type: ignore[arg-type]
        told, after = f"Put off for you until {until:%H:%M} UTC.", {"until": until.isoformat()}
    else:
        told, after = "Back in your inbox.", {"until": ""}
        snoozes.take_up(request.user, call)  # type: ignore[arg-type]
    audit.record(request, "snooze", f"call:{call}", after=after)
    if "application/json" in request.headers.get("Accept", ""):
        return JsonResponse({"code": "ok", "message": told})
    messages.success(request, told)
    return redirect("inbox")
