"""What every page knows of its viewer: name, role and theme."""

from typing import Any

from django.http import HttpRequest

from control.accounts.roles import of_request

THEMES = ("dark", "light", "system")


def viewer(request: HttpRequest) -> dict[str, Any]:
    """`may_act` steers what is shown; every verb is checked again on the server."""
    actor = of_request(request)
    theme = request.COOKIES.get("theme", "system")
    return {
        "actor": actor,
        "may_act": bool(actor and actor.may("steer")),
        "theme": theme if theme in THEMES else "system",
    }
