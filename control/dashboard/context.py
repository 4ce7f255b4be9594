"""What every page knows of its viewer: name, role, theme, and how many runs wait for an answer."""

from collections.abc import Callable
from typing import Any

from django.db import Error
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from control.accounts.models import User
from control.accounts.roles import of_request
from control.dashboard import asks, banners

THEMES = ("dark", "light", "system")


def viewer(request: HttpRequest) -> dict[str, Any]:
    """`may_act` steers what is shown; every verb is checked again on the server."""
    actor = of_request(request)
    theme = request.COOKIES.get("theme", "system")
    return {
        "actor": actor,
        "may_act": bool(actor and actor.may("steer")),
        "may_read_audit": bool(actor and actor.may("read_audit")),
        "asked": SimpleLazyObject(lambda: _asked(request)),
        "blocks": SimpleLazyObject(lambda: _told(request, banners.blocks)),
        "stopping": SimpleLazyObject(lambda: _told(request, banners.stopping)),
        "theme": theme if theme in THEMES else "system",
        "prose": "laid" if request.COOKIES.get("prose") == "laid" else "written",
    }


def _asked(request: HttpRequest) -> int:
    """Looked up by the pages that show it. A page that tells of a broken database shall not break on it itself."""
    user = getattr(request, "user", None)
    try:
        return asks.count(user, timezone.now()) if isinstance(user, User) and user.is_active else 0
    except Error:
        return 0


def _told(request: HttpRequest, look: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The same for what the banner tells."""
    user = getattr(request, "user", None)
    try:
        # No transaction around it: on SQLite a page would wait its turn among the writers to read a number.
        return look() if isinstance(user, User) and user.is_active else []
    except Error:
        return []
