"""Which agents there are, named as `name`, `name@3` or `name@shipped`; laid out for reading, and who runs with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from agents.spec import ACTIVE
from control.dashboard.policy_changes import Change, changes
from control.dashboard.policy_sheet import written
from control.dashboard.sides import Sides
from control.fleet import agent_source, agents
from control.fleet.models import Agent, Memory
from control.runs.models import Run

_GOES_ON = Q(status__in=[status.value for status in ACTIVE])
_DAILY = {
    "max_cost_per_day": "Cost a day, all runs",
    "max_tokens_per_day": "Tokens a day, all runs",
    "max_running": "Runs at work at once",
}
_LIMITS = {
    "max_turns": "Turns",
    "max_steps": "Tool steps",
    "max_tokens": "Tokens",
    "max_cost": "Cost",
    "max_seconds": "Wall clock",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Runs of one agent: how many go on, and how many there ever were."""

    active: int = 0
    every: int = 0


def _shipped(name: str) -> tuple[Mapping[str, Any], str]:
    body = agents.shipped()
    return body, agent_source.written(body)


SIDES = Sides(
    model=Agent,
    body_of=agent_source.body_of,
    source_of=agent_source.source_of,
    shipped_names=(agents.DEFAULT,),
    shipped=_shipped,
)


def uses() -> dict[str, Use]:
    """By the name of the agent."""
    counted = Run.objects.values_list("agent").annotate(every=Count("id"), active=Count("id", filter=_GOES_ON))
    return {name: Use(active=active, every=every) for name, every, active in counted.order_by()}


def delegating(name: str) -> list[str]:
    """Who may delegate to an agent."""
    rows = Agent.objects.filter(current=True).order_by("name").values_list("name", "delegates_to")
    return [other for other, names in rows if name in (names or []) and other != name]


def limits(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The limits of an agent with their units, those of a run first."""
    found = [(title, written(name, float(given[name]))) for name, title in _LIMITS.items() if given.get(name)]
    for name, title in _DAILY.items():
        if given.get(name) is not None:
            kind = "max_cost" if name == "max_cost_per_day" else name
            found.append((title, written(kind, float(given[name]))))
    return found


def notes(name: str) -> int:
    """How many notes it keeps that runs read."""
    return Memory.objects.filter(agent=name, current=True, disabled=False).count()


def servers(row: Agent) -> list[tuple[str, str, str]]:
    """Name, where it is, and what it may use: values of secrets are not there, only their names."""
    found = []
    for one in row.mcp_servers or []:
        where = str(one.get("url") or " ".join([str(one.get("command", "")), *map(str, one.get("args") or [])]))
        names = [*(one.get("env") or []), *(one.get("headers_env") or {}).values()]
        told = ([f"reads {', '.join(map(str, names))}"] if names else []) + (
            [f"only {', '.join(map(str, one['tools']))}"] if one.get("tools") else []
        )
        found.append((str(one.get("name", "")), where, "; ".join(told)))
    return found


def told(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs but for the prompt, which is told line by line."""
    return changes(_without_prompt(before), _without_prompt(after))


def _without_prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "prompt" and value not in ({}, [], "")}
