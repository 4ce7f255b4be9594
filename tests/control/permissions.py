"""Who may do what: every address and method with the role it needs. The one place; a new address that is missing here
fails `test_permissions.py`.

`anyone`: no sign-in. A method that is not named is answered with 405. Keys are the routes as the URL table has them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.urls import get_resolver

Methods = dict[str, str]
READ: Methods = {"GET": "viewer"}

PAGES: dict[str, Methods] = {
    "": READ,
    "live/fleet": READ,
    "live/inbox": READ,
    "live/banner": READ,
    "inbox/": READ,
    "inbox/snooze": {"POST": "viewer"},
    "incidents/": READ,
    "incidents/rules/": READ,
    "incidents/<uuid:incident_id>/": READ,
    "incidents/<uuid:incident_id>/act": {"POST": "operator"},
    "example/": READ,
    "example/start": {"POST": "operator"},
    "example/clear": {"POST": "operator"},
    "example/<uuid:run_id>/": READ,
    "alert-routes/": READ,
    "alert-routes/new/": {"GET": "admin", "POST": "admin"},
    "alert-routes/<uuid:route_id>/": READ,
    "alert-routes/<uuid:route_id>/edit/": {"GET": "admin", "POST": "admin"},
    "alert-routes/<uuid:route_id>/test": {"POST": "admin"},
    "alert-routes/<uuid:route_id>/switch": {"POST": "admin"},
    "sign-in/": {"GET": "anyone", "POST": "anyone"},
    "sign-in/<str:token>/": {"GET": "anyone"},
    "sign-in/oidc/": {"GET": "anyone"},
    "sign-in/oidc/back/": {"GET": "anyone"},
    "sign-out/": {"POST": "anyone"},
    "csp-report": {"POST": "anyone"},
    "theme/": {"POST": "anyone"},
    "prose/": {"POST": "anyone"},
    "styleguide": READ,
    "account/": READ,
    "account/sessions/end": {"POST": "viewer"},
    "account/tokens/new": {"POST": "viewer"},
    "account/tokens/revoke": {"POST": "viewer"},
    "account/password": {"POST": "viewer"},
    "agents/": READ,
    "agents/-/new/": {"GET": "admin", "POST": "admin"},
    "agents/-/compare/": READ,
    "agents/<str:name>/": READ,
    "agents/<str:name>/edit/": {"GET": "admin", "POST": "admin"},
    "agents/<str:name>/versions/": READ,
    "agents/<str:name>/versions/<int:version>/": READ,
    "agents/<str:name>/versions/<int:version>/toml": READ,
    "agents/<path:name>/memory/": {"GET": "viewer", "POST": "operator"},
    "policies/": READ,
    "policies/-/new/": {"GET": "admin", "POST": "admin"},
    "policies/-/compare/": READ,
    "policies/-/suggest/": READ,
    "policies/-/backtest/": {"GET": "viewer", "POST": "operator"},
    "policies/-/backtest/<uuid:backtest_id>/": READ,
    "policies/-/backtest/<uuid:backtest_id>/cancel": {"POST": "operator"},
    "policies/<str:name>/": READ,
    "policies/<str:name>/edit/": {"GET": "admin", "POST": "admin"},
    "policies/<str:name>/versions/": READ,
    "policies/<str:name>/versions/<int:version>/": READ,
    "policies/<str:name>/versions/<int:version>/toml": READ,
    "schedules/": READ,
    "schedules/-/new/": {"GET": "operator", "POST": "operator"},
    "schedules/<str:name>/": {"GET": "operator", "POST": "operator"},
    "schedules/<str:name>/act": {"POST": "operator"},
    "workers/": READ,
    "workers/<str:worker>/drain": {"POST": "operator"},
    "credentials/": READ,
    "credentials/<path:label>/change": {"POST": "operator"},
    "audit/": {"GET": "operator"},
    "audit/export.<form>": {"GET": "admin"},
    "stop/": {"GET": "operator", "POST": "operator"},
    "steer/": {"GET": "operator", "POST": "operator"},
    "bulks/<uuid:bulk_id>/": READ,
    "bulks/<uuid:bulk_id>/cancel": {"POST": "operator"},
    "blocks/": READ,
    "blocks/<uuid:block_id>/lift": {"POST": "operator"},
    # Leads to the fleet.
    "runs/": {"GET": "anyone"},
    "runs/new/": {"GET": "operator", "POST": "operator"},
    "runs/<uuid:run_id>/": READ,
    "runs/<uuid:run_id>/earlier": READ,
    "runs/<uuid:run_id>/changes": READ,
    "runs/<uuid:run_id>/calls/<str:call_id>/": READ,
    "runs/<uuid:run_id>/calls/<str:call_id>/piece": READ,
    "runs/<uuid:run_id>/find": READ,
    "runs/<uuid:run_id>/at/<int:seq>/": READ,
    "runs/<uuid:run_id>/policy/": READ,
    "runs/<uuid:run_id>/postmortem": READ,
    # Read, they lead back to the page.
    "runs/<run_id>/postmortem/<act>": {"GET": "viewer", "POST": "operator"},
    # Whoever has a good link may read; a bad one leads nowhere.
    "shared/postmortems/<str:secret>/": {"GET": "anyone"},
    "runs/<uuid:run_id>/fork": {"GET": "viewer", "POST": "operator"},
    "runs/<uuid:run_id>/replay": {"GET": "viewer", "POST": "operator"},
    "runs/<uuid:run_id>/regression.zip": READ,
    "runs/<uuid:run_id>/withdraw": {"GET": "viewer", "POST": "operator"},
    # Read, they lead back to the run; interrupt asks for a reason first.
    "runs/<run_id>/<verb>": {"GET": "viewer", "POST": "operator"},
    "healthz": {"GET": "anyone"},
    "readyz": {"GET": "anyone"},
    # It tells what is spent: open on one machine only.
    "metrics": {"GET": "anyone" if settings.EMBEDDED else "viewer"},
    "api/docs": {"GET": "anyone"},
    "api/openapi.json": {"GET": "anyone"},
}

API: dict[tuple[str, str], str] = {
    ("GET", "/runs"): "viewer",
    ("POST", "/runs"): "operator",
    ("GET", "/runs/{run_id}"): "viewer",
    ("GET", "/runs/{run_id}/events"): "viewer",
    ("GET", "/runs/{run_id}/calls.jsonl"): "viewer",
    ("GET", "/runs/{run_id}/postmortem.json"): "viewer",
    ("GET", "/runs/{run_id}/postmortem.md"): "viewer",
    ("GET", "/runs/{run_id}/postmortem.html"): "viewer",
    ("POST", "/runs/{run_id}/interrupt"): "operator",
    ("POST", "/runs/{run_id}/steer"): "operator",
    ("POST", "/runs/{run_id}/pause"): "operator",
    ("POST", "/runs/{run_id}/unpause"): "operator",
    ("POST", "/runs/{run_id}/answer"): "operator",
    ("POST", "/runs/{run_id}/raise"): "operator",
    ("POST", "/runs/{run_id}/fork"): "operator",
    ("POST", "/runs/{run_id}/replay"): "operator",
    ("GET", "/runs/{run_id}/replay"): "viewer",
    ("GET", "/runs/{run_id}/regression.zip"): "viewer",
    ("GET", "/commands/{command_id}"): "viewer",
    ("DELETE", "/commands/{command_id}"): "operator",
    ("POST", "/interrupt"): "operator",
    ("POST", "/steer"): "operator",
    ("GET", "/bulk/{bulk_id}"): "viewer",
    ("GET", "/bulk/{bulk_id}/runs"): "viewer",
    ("DELETE", "/bulk/{bulk_id}"): "operator",
    ("GET", "/blocks"): "viewer",
    ("DELETE", "/blocks/{block_id}"): "operator",
    ("GET", "/agents"): "viewer",
    ("GET", "/agents/{name}"): "viewer",
    ("PUT", "/agents/{name}"): "admin",
    ("GET", "/agents/{name}/memory"): "viewer",
    ("POST", "/agents/{name}/memory"): "operator",
    ("PUT", "/agents/{name}/memory/{note}"): "operator",
    ("DELETE", "/agents/{name}/memory/{note}"): "operator",
    ("GET", "/policies"): "viewer",
    ("GET", "/policies/{name}"): "viewer",
    ("PUT", "/policies/{name}"): "admin",
    ("POST", "/backtests"): "operator",
    ("GET", "/backtests"): "viewer",
    ("GET", "/backtests/{backtest_id}"): "viewer",
    ("GET", "/backtests/{backtest_id}/runs"): "viewer",
    ("DELETE", "/backtests/{backtest_id}"): "operator",
    ("GET", "/suggestions"): "viewer",
    ("GET", "/schedules"): "viewer",
    ("GET", "/schedules/{name}"): "viewer",
    ("PUT", "/schedules/{name}"): "operator",
    ("DELETE", "/schedules/{name}"): "operator",
    ("POST", "/schedules/{name}/switch"): "operator",
    ("POST", "/schedules/{name}/run"): "operator",
    ("GET", "/workers"): "viewer",
    ("POST", "/workers/{worker_id}/drain"): "operator",
    ("GET", "/credentials"): "viewer",
    ("POST", "/credentials/{label}/rest"): "operator",
    ("POST", "/credentials/{label}/revive"): "operator",
    ("GET", "/audit"): "operator",
    ("GET", "/incidents"): "viewer",
    ("GET", "/incidents/{incident_id}"): "viewer",
    **{
        ("POST", f"/incidents/{{incident_id}}/{verb}"): "operator"
        for verb in ("acknowledge", "assign", "comment", "snooze", "wake", "resolve", "reopen")
    },
    ("GET", "/alert-rules"): "viewer",
    ("GET", "/alert-routes"): "viewer",
    ("POST", "/alert-routes"): "admin",
    ("GET", "/alert-routes/{route_id}"): "viewer",
    ("PUT", "/alert-routes/{route_id}"): "admin",
    ("POST", "/alert-routes/{route_id}/test"): "admin",
    ("GET", "/alert-routes/{route_id}/preview"): "viewer",
    ("GET", "/alert-routes/{route_id}/deliveries"): "viewer",
}

SOCKETS = {"ws/runs/<run>": "viewer", "ws/fleet": "viewer", "": "nobody"}


def readable(pattern: str) -> str:
    """A route without the marks of an expression: `audit/export.<form>`."""
    plain = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", pattern)
    return plain.strip("^$").replace("/?", "").replace("\\.", ".")


def _routes(patterns: Iterable[Any], before: str = "") -> Iterator[str]:
    for one in patterns:
        path = before + readable(str(one.pattern))
        if hasattr(one, "url_patterns"):
            yield from _routes(one.url_patterns, path)
        else:
            yield path


def every_route() -> list[str]:
    """The URL table as it is, each route once."""
    return sorted(set(_routes(get_resolver().url_patterns)))


def addresses(route: str, parts: Mapping[str, list[str]]) -> list[str]:
    """The route with every value that `parts` has for each of its parts."""
    found = [route]
    for name in re.findall(r"<(?:\w+:)?(\w+)>", route):
        found = [re.sub(rf"<(?:\w+:)?{name}>", value, path) for path in found for value in parts[name]]
    return [f"/{path}" for path in found]
