"""Whether an agent or a policy could work at all, told before it is saved and not when a run fails."""

from typing import Any

import orjson

from agents.errors import ConfigError
from agents.policy import approvals
from agents.policy.limits import limits_from
from agents.tools import registry
from agents.tools.mcp.config import servers_of
from agents.tools.memory import REMEMBER
from control.api.errors import ApiError
from control.fleet import addresses, policies
from control.fleet.models import Agent, Policy
from control.runs import models_of_runs

LARGEST_POLICY = 100_000


def check_agent(fields: dict[str, Any], *, itself: str) -> None:
    """Raises ApiError for unknown tools, policies or sub-agents, for MCP servers and base URLs that could not work, and
    StartRefused for fallbacks that no run could use."""
    known = {*registry.Registry(registry.default_tools(web=True)).names, REMEMBER}
    if unknown := [tool for tool in fields["tools"] if tool not in known]:
        message = f"There is no tool {unknown[0]!r:.60}. Known tools: {', '.join(sorted(known))}."
        raise ApiError("unknown_tool", message, detail={"unknown": unknown, "known": sorted(known)})
    if not Policy.objects.filter(name=fields["policy"], current=True).exists():
        message = f"There is no policy {fields['policy']!r:.60}. List them with GET /api/policies."
        raise ApiError("unknown_policy", message)
    for name in fields["delegates_to"]:
        if name != itself and not Agent.objects.filter(name=name, current=True).exists():
            message = f"There is no agent {name!r:.60} to delegate to. Save that one first."
            raise ApiError("unknown_agent", message)
    if fields["base_url"]:
        check_base_url(fields["base_url"])
    try:
        servers_of(fields.get("mcp_servers", ()))
    except ConfigError as error:
        raise ApiError(error.kind, error.message, status=422) from error
    models_of_runs.check_fallbacks(fields.get("fallbacks", ()), fields["base_url"])


def check_base_url(url: str) -> None:
    if (why := addresses.why_bad(url)) is not None:
        raise ApiError("bad_base_url", why, detail={"base_url": url[:200]})


def check_policy(body: dict[str, Any]) -> None:
    """Raises ApiError for a body that is too large, is no storable JSON, sets a fuse to what is no limit, or has
    approvals that cannot be followed."""
    try:
        size = len(orjson.dumps(body))
    except orjson.JSONEncodeError as error:
        message = "A policy holds texts, numbers, true and false, lists and tables; this one holds something else."
        raise ApiError("bad_policy", message, status=422) from error
    if size > LARGEST_POLICY:
        raise ApiError("bad_policy", f"A policy has at most {LARGEST_POLICY} bytes of JSON.", status=422)
    try:
        limits_from(policies.limits_of(body), "policy")
        approvals.rules_of(body)
    except ConfigError as error:
        raise ApiError(error.kind, error.message, status=422) from error
