"""Making and changing alert routes: what is typed is checked here, for the page and the API alike; secrets go in and
never come out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction

from agents.events import stamp
from control.incidents import sealing
from control.incidents.models import AlertRoute, Delivery, Severity
from control.incidents.rules import RULES
from control.incidents.transports import TRANSPORTS
from control.incidents.transports.ports import BadOption, Transport

MOST_NAMES = 50
MOST_OPTION = 2_000
NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")
# name: least, most
NUMBERS = {"after_minutes": (0, 1_440), "repeat_hours": (0, 168), "group_seconds": (0, 3_600)}


class BadRoute(Exception):
    """`field` names what is wrong, the text what to do; neither holds a secret."""

    def __init__(self, field: str, message: str, code: str = "bad_route") -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A route as somebody wants it. In `secrets` "" keeps what there is and None takes it away."""

    name: str
    transport: str
    enabled: bool = True
    options: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str | None] = field(default_factory=dict)
    least: str = Severity.WARNING.value
    rules: Sequence[str] = ()
    agents: Sequence[str] = ()
    projects: Sequence[str] = ()
    after_minutes: int = 0
    repeat_hours: int = 4
    group_seconds: int = 30
    send_resolved: bool = True
    quiet_from: time | None = None
    quiet_to: time | None = None
    zone: str = "UTC"


def save(wish: Wish, *, by: str, now: datetime, route: AlertRoute | None = None) -> AlertRoute:
    """A new route, or this one changed. Raises BadRoute for the first thing that is wrong."""
    made = fitting(wish, route)
    new = route is None
    made.changed_at, made.changed_by = now, by[:150]
    if new:
        made.created_at, made.created_by = now, by[:150]
    # Whoever changes a route wants it tried now.
    made.rest_until = None
    try:
        with transaction.atomic():
            made.save(force_insert=new)
    except IntegrityError:
        raise BadRoute("name", "Another route has this name. Give it one of its own.", "name_taken") from None
    return made


def fitting(wish: Wish, route: AlertRoute | None = None) -> AlertRoute:
    """The row of a wish, not saved. Raises BadRoute."""
    transport = TRANSPORTS.get(wish.transport)
    if transport is None:
        raise BadRoute("transport", f"Choose one of {', '.join(TRANSPORTS)}.")
    name = wish.name.strip()
    if not NAME.fullmatch(name):
        raise BadRoute("name", "Give it a name of at most 100 characters, e.g. “on call, PagerDuty”.")
    _check_plain(wish)
    kept = route.sealed if route is not None and route.transport == wish.transport else {}
    options, sealed = _options(transport, wish), _sealed(transport, wish, kept)
    try:
        transport.check(options, _known(sealed))
    except BadOption as bad:
        raise BadRoute(bad.name, bad.message) from None
    made = AlertRoute.objects.get(pk=route.pk) if route is not None else AlertRoute()
    made.name, made.transport, made.enabled = name, transport.name, wish.enabled
    made.options, made.sealed = options, sealed
    made.least, made.rules = wish.least, list(wish.rules)
    made.agents, made.projects = list(wish.agents), list(wish.projects)
    made.after_minutes, made.repeat_hours, made.group_seconds = (
        wish.after_minutes,
        wish.repeat_hours,
        wish.group_seconds,
    )
    made.send_resolved = wish.send_resolved
    made.quiet_from, made.quiet_to, made.zone = wish.quiet_from, wish.quiet_to, wish.zone
    return made


def _check_plain(wish: Wish) -> None:
    if wish.least not in Severity.values:
        raise BadRoute("least", f"Choose one of {', '.join(Severity.values)}.")
    for rule in wish.rules:
        if rule not in RULES:
            raise BadRoute("rules", f"There is no rule “{rule[:40]}”. Choose among {', '.join(RULES)}.")
    for where, names in (("agents", wish.agents), ("projects", wish.projects)):
        if len(names) > MOST_NAMES or any(not 0 < len(name) <= 100 or not name.isprintable() for name in names):
            raise BadRoute(where, f"Name at most {MOST_NAMES}, each of at most 100 characters.")
    for where, (least, most) in NUMBERS.items():
        if not least <= getattr(wish, where) <= most:
            raise BadRoute(where, f"Give a whole number from {least} to {most:,}.")
    if (wish.quiet_from is None) != (wish.quiet_to is None):
        raise BadRoute("quiet_to", "Quiet hours have a beginning and an end. Give both or neither.")
    try:
        ZoneInfo(wish.zone)
    except (KeyError, ValueError, OSError):
        raise BadRoute("zone", "Name a time zone like Europe/Berlin, or UTC.") from None


def _options(transport: Transport, wish: Wish) -> dict[str, str]:
    _only(wish.options, [option.name for option in transport.options if not option.secret])
    found = {}
    for option in transport.options:
        if option.secret:
            continue
        value = str(wish.options.get(option.name, "")).strip() or option.default
        if option.needed and not value:
            raise BadRoute(option.name, f"{option.label} is needed.")
        if len(value) > MOST_OPTION or any(not char.isprintable() for char in value):
            raise BadRoute(option.name, f"At most {MOST_OPTION:,} characters on one line.")
        if option.choices and value not in option.choices:
            raise BadRoute(option.name, f"Choose one of {', '.join(option.choices)}.")
        found[option.name] = value
    return found


def _sealed(transport: Transport, wish: Wish, kept: Mapping[str, str]) -> dict[str, str]:
    _only(wish.secrets, [option.name for option in transport.options if option.secret])
    found = {}
    for option in transport.options:
        if not option.secret:
            continue
        given = wish.secrets.get(option.name, "")
        value = given.strip() if given is not None else None
        if value and (len(value) > MOST_OPTION or any(not char.isprintable() for char in value)):
            raise BadRoute(option.name, f"At most {MOST_OPTION:,} characters on one line.")
        if value and value.startswith("env:") and not sealing.is_reference(value):
            raise BadRoute(option.name, "Only variables whose name begins with ALERT_ can be named: env:ALERT_….")
        if value:
            found[option.name] = sealing.seal(value)
        elif value is not None and option.name in kept:
            found[option.name] = kept[option.name]
        elif option.needed:
            raise BadRoute(option.name, f"{option.label} is needed.")
    return found


def _only(given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise BadRoute(name[:40], f"There is no such setting here. Known: {', '.join(known) or 'none'}.")


def _known(sealed: Mapping[str, str]) -> dict[str, str]:
    try:
        return sealing.opened(sealed)
    except sealing.Unreadable as error:
        name = str(error).partition(" ")[0]
        raise BadRoute(name, str(error)) from None


def switch(route: AlertRoute, enabled: bool, *, by: str, now: datetime) -> bool:
    """On or off; what is due on one that is off is dropped. False if it was so already."""
    changed = AlertRoute.objects.filter(pk=route.pk).exclude(enabled=enabled)
    return bool(changed.update(enabled=enabled, changed_at=now, changed_by=by[:150], rest_until=None))


def test(route: AlertRoute, now: datetime) -> Delivery:
    """A made-up incident on this route alone, also on one that is off; the desk sends it within a second or two."""
    made = Delivery(route=route, action=Delivery.Action.TEST, created_at=now, due_at=now)
    made.key = f"test:{made.pk}"
    made.save(force_insert=True)
    # A service that asked for patience is tried all the same: a person waits.
    AlertRoute.objects.filter(pk=route.pk).update(rest_until=None)
    return made


def row(route: AlertRoute) -> dict[str, Any]:
    """As the API and the audit trail tell it; of a secret only that it is there, or where."""
    names = ("id", "name", "transport", "enabled", "example", "options", "least", "rules", "agents", "projects")
    more = ("after_minutes", "repeat_hours", "group_seconds", "send_resolved", "zone", "created_by", "changed_by")
    return {
        **{name: getattr(route, name) for name in (*names, *more)},
        "secrets": {name: sealing.shown(kept) for name, kept in route.sealed.items()},
        "quiet_from": _clock(route.quiet_from),
        "quiet_to": _clock(route.quiet_to),
        "rest_until": stamp(route.rest_until) if route.rest_until else None,
        "created_at": stamp(route.created_at),
        "changed_at": stamp(route.changed_at),
    }


def _clock(moment: time | None) -> str | None:
    return f"{moment:%H:%M}" if moment else None


def wish_of(route: AlertRoute) -> Wish:
    """A route as the wish that would leave it as it is."""
    names = [name for name in Wish.__dataclass_fields__ if name != "secrets"]
    return Wish(**{name: getattr(route, name) for name in names})
