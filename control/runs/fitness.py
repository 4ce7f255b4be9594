"""Whether an agent could work at all, told before it is saved and not when a run fails."""

from collections.abc import Mapping
from typing import Any

from agents.errors import ConfigError
from agents.tools import registry
from agents.tools.mcp.config import servers_of
from agents.tools.memory import REMEMBER
from control.fleet import addresses
from control.fleet.models import Agent, Policy
from control.runs import models_of_runs
from control.runs.refusals import StartRefused


class Unfit(Exception):
    """`place` is the field that is wrong; `code` is stable, `message` says what to do."""

    def __init__(self, place: str, code: str, message: str, *, detail: Any = None, status: int = 400) -> None:
        super().__init__(message)
        self.place = place
        self.code = code
        self.message = message
        self.detail: dict[str, Any] = detail or {}
        self.status = status


def known_tools() -> list[str]:
    """Every tool that an agent may list, by name."""
    return sorted({*registry.Registry(registry.default_tools(web=True)).names, REMEMBER})


def check(fields: Mapping[str, Any], *, itself: str) -> None:
    """Raises Unfit for unknown tools, policies or sub-agents, and for servers, addresses and fallbacks that no run
    could use."""
    known = known_tools()
    if unknown := [tool for tool in fields["tools"] if tool not in known]:
        message = f"There is no tool {unknown[0]!r:.60}. Known tools: {', '.join(known)}."
        raise Unfit("tools", "unknown_tool", message, detail={"unknown": unknown, "known": known})
    if not Policy.objects.filter(name=fields["policy"], current=True).exists():
        message = f"There is no policy {fields['policy']!r:.60}. List them with GET /api/policies."
        raise Unfit("policy", "unknown_policy", message)
    for name in fields["delegates_to"]:
        if name != itself and not Agent.objects.filter(name=name, current=True).exists():
            message = f"There is no agent {name!r:.60} to delegate to. Save that one first."
            raise Unfit("delegates_to", "unknown_agent", message)
    url = fields["base_url"]
    if url and (why := addresses.why_bad(url)) is not None:
        raise Unfit("base_url", "bad_base_url", why, detail={"base_url": url[:200]})
    try:
        servers_of(fields.get("mcp_servers", ()))
    except ConfigError as error:
        raise Unfit("mcp_servers", error.kind, error.message, status=422) from error
    try:
        models_of_runs.check_fallbacks(fields.get("fallbacks", ()), url)
    except StartRefused as error:
        raise Unfit("fallbacks", error.code, error.message, detail=error.detail, status=error.status) from error
