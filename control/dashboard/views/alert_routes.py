"""Alert routes: who is told of what, and when; making and changing them, a preview, a test, and what was sent."""

from datetime import time
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import incident_words as words
from control.dashboard import rooms
from control.fleet.models import Agent
from control.incidents import previews, routes, sealing
from control.incidents.models import AlertRoute, Delivery, Severity
from control.incidents.routes import NUMBERS, BadRoute, Wish
from control.incidents.rules import RULES
from control.incidents.transports import TRANSPORTS
from control.runs.clock import database_now

SHOWN = 30


def _find(route_id: object) -> AlertRoute:
    route = AlertRoute.objects.filter(pk=str(route_id)).first()
    if route is None:
        raise Http404("There is no route of this id.")
    return route


@login_required
def listing(request: HttpRequest) -> HttpResponse:
    now = database_now()
    found = AlertRoute.objects.order_by("-enabled", "after_minutes", "name")
    context = {
        "section": "incidents",
        "rows": [_row(route) for route in found],
        "transports": list(TRANSPORTS.values()),
        "may_write": rooms.may(request, "write_route"),
        "now": now,
        "on": sum(route.enabled and not route.example for route in found),
        "example_on": any(route.enabled and route.example for route in found),
    }
    return render(request, "routes/list.html", context)


def _row(route: AlertRoute) -> dict[str, Any]:
    last = route.deliveries.exclude(state=Delivery.State.DROPPED).order_by("-id").first()
    transport = TRANSPORTS.get(route.transport)
    return {
        "route": route,
        "word": transport.word if transport else route.transport,
        "least": words.SEVERITIES[route.least],
        "last": last,
        "last_state": words.DELIVERIES[last.state] if last else None,
    }


@login_required
def one(request: HttpRequest, route_id: object) -> HttpResponse:
    """Its settings without its secrets, what a notice looks like, and what was sent of late."""
    route = _find(route_id)
    transport = TRANSPORTS.get(route.transport)
    sent = route.deliveries.select_related("incident").order_by("-id")[:SHOWN]
    context = {
        "section": "incidents",
        **_row(route),
        "options": [
            {"option": option, "value": sealing.shown(route.sealed[option.name]) if option.secret else value}
            for option in (transport.options if transport else ())
            if (value := route.options.get(option.name, "")) or option.name in route.sealed
        ],
        "preview": previews.of(route, database_now()) if transport else None,
        "deliveries": [
            {"row": row, "state": words.DELIVERIES[row.state], "action": words.ACTIONS[row.action]} for row in sent
        ],
        "may_write": rooms.may(request, "write_route"),
        "now": database_now(),
    }
    return render(request, "routes/one.html", context)


# --- writing ----------------------------------------------------------------------------------------------------


@login_required
def new(request: HttpRequest) -> HttpResponse:
    if answer := rooms.refused(request, "write_route", "route:new", "/alert-routes/"):
        return answer
    return _edit(request, None, request.GET.get("transport") or request.POST.get("transport") or "webhook")


@login_required
def edit(request: HttpRequest, route_id: object) -> HttpResponse:
    if answer := rooms.refused(request, "write_route", f"route:{route_id}", "/alert-routes/"):
        return answer
    route = _find(route_id)
    return _edit(request, route, route.transport)


def _edit(request: HttpRequest, route: AlertRoute | None, transport: str) -> HttpResponse:
    target = f"route:{route.pk}" if route else "route:new"
    if transport not in TRANSPORTS:
        return rooms.told(request, "There is no such kind of route.", "alert_routes", good=False)
    problem: BadRoute | None = None
    if request.method == "POST":
        try:
            saved = _save(request, route, transport)
        except BadRoute as error:
            audit.record(request, "write_route", target, result=error.code)
            problem = error
        else:
            word = "Saved." if route else "Made. Send a test to see it arrive."
            rooms.told(request, word, "alert_routes")
            return redirect("alert_route", saved.pk)
    return render(
        request, "routes/edit.html", _form(request, route, transport, problem), status=400 if problem else 200
    )


def _save(request: HttpRequest, route: AlertRoute | None, transport: str) -> AlertRoute:
    before = routes.row(route) if route else None
    actor = of_request(request)
    by = actor.name if actor else ""
    saved = routes.save(_wish(request, transport), by=by, now=database_now(), route=route)
    given = [option.name for option in TRANSPORTS[transport].options if option.secret and request.POST.get(option.name)]
    after = {**routes.row(saved), "secrets_given": given}
    audit.record(request, "write_route", f"route:{saved.pk}", before=before, after=after)
    return saved


def _wish(request: HttpRequest, transport: str) -> Wish:
    post = request.POST
    options = TRANSPORTS[transport].options
    secrets = {
        option.name: None if post.get(f"clear-{option.name}") else post.get(option.name, "")
        for option in options
        if option.secret
    }
    numbers = {name: _number(name, post.get(name, "")) for name in NUMBERS}
    return Wish(
        name=post.get("name", ""),
        transport=transport,
        enabled=bool(post.get("enabled")),
        options={option.name: post.get(option.name, "") for option in options if not option.secret},
        secrets=secrets,
        least=post.get("least", ""),
        rules=post.getlist("rules"),
        agents=_names(post.get("agents", "")),
        projects=_names(post.get("projects", "")),
        send_resolved=bool(post.get("send_resolved")),
        quiet_from=_clock("quiet_from", post.get("quiet_from", "")),
        quiet_to=_clock("quiet_to", post.get("quiet_to", "")),
        zone=post.get("zone", "").strip() or "UTC",
        **numbers,
    )


def _number(name: str, text: str) -> int:
    text = text.strip() or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise BadRoute(name, "Give a whole number.")
    return int(text)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _clock(name: str, text: str) -> time | None:
    if not text.strip():
        return None
    try:
        return time.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        raise BadRoute(name, "Write a time of the day like 22:00.") from None


def _form(request: HttpRequest, route: AlertRoute | None, name: str, problem: BadRoute | None) -> dict[str, Any]:
    """What was typed, else what is kept, else the defaults. A secret never comes back, not even what was just typed."""
    transport = TRANSPORTS[name]
    posted = request.POST if request.method == "POST" else None
    kept = route or AlertRoute(transport=name)
    fields = [
        {
            "option": option,
            "kept": option.name in kept.sealed,
            "shown": sealing.shown(kept.sealed[option.name]) if option.name in kept.sealed else "",
            "value": ""
            if option.secret
            else posted.get(option.name, "")
            if posted is not None
            else kept.options.get(option.name, option.default),
            "problem": problem.message if problem and problem.field == option.name else "",
        }
        for option in transport.options
    ]
    plain = ("name", "least", "after_minutes", "repeat_hours", "group_seconds", "zone")
    typed: dict[str, Any] = {key: posted.get(key, "") if posted is not None else getattr(kept, key) for key in plain}
    typed |= {
        key: posted.get(key, "") if posted is not None else ", ".join(getattr(kept, key))
        for key in ("agents", "projects")
    }
    for key in ("quiet_from", "quiet_to"):
        moment = getattr(kept, key)
        typed[key] = posted.get(key, "") if posted is not None else f"{moment:%H:%M}" if moment else ""
    for key in ("enabled", "send_resolved"):
        typed[key] = bool(posted.get(key)) if posted is not None else getattr(kept, key)
    return {
        "section": "incidents",
        "route": route,
        "transport": transport,
        "fields": fields,
        "typed": typed,
        "chosen": posted.getlist("rules") if posted is not None else kept.rules,
        "rules": list(RULES.values()),
        "severities": [(value, words.SEVERITIES[value].word) for value in Severity.values],
        "agents": list(Agent.objects.filter(current=True).order_by("name").values_list("name", flat=True)[:200]),
        "problem": problem,
        "on_field": {problem.field: problem.message} if problem else {},
    }


@login_required
@require_POST
def test(request: HttpRequest, route_id: object) -> HttpResponse:
    target = f"route:{route_id}"
    if answer := rooms.refused(request, "write_route", target, f"/alert-routes/{route_id}/"):
        return answer
    route = _find(route_id)
    made = routes.test(route, database_now())
    audit.record(request, "test_route", target, after={"delivery": made.pk})
    return rooms.told(request, "The desk sends a test now; its answer stands below.", f"/alert-routes/{route.pk}/")


@login_required
@require_POST
def switch(request: HttpRequest, route_id: object) -> HttpResponse:
    """`do=on` or `do=off`."""
    target, back = f"route:{route_id}", f"/alert-routes/{route_id}/"
    if answer := rooms.refused(request, "write_route", target, back):
        return answer
    route = _find(route_id)
    wanted = request.POST.get("do") == "on"
    actor = of_request(request)
    changed = routes.switch(route, wanted, by=actor.name if actor else "", now=database_now())
    result = "ok" if changed else "unchanged"
    audit.record(
        request, "write_route", target, before={"enabled": route.enabled}, after={"enabled": wanted}, result=result
    )
    return rooms.told(request, "Switched on." if wanted else "Switched off: nobody is told on it.", back)
