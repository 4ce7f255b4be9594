"""The pages that show agents: the list, one agent with the runs that use it, its versions, and two side by side."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.tools import registry
from control.dashboard import agent_refs, policy_changes, rooms, states
from control.fleet import agent_source, agents
from control.fleet.models import Agent, Policy
from control.runs.models import Run

VERSIONS_SHOWN = 200
RUNS_SHOWN = 8
_TOOLS = {spec.name: spec.concurrency.value for spec in registry.Registry(registry.default_tools(web=True)).specs}


def found(name: str, version: int | None = None) -> Agent:
    row = agent_refs.SIDES.find(name, version)
    if row is None:
        raise Http404("There is no agent of this name and version.")
    return row


def base(request: HttpRequest) -> dict[str, Any]:
    """What every page of agents knows."""
    return {"section": "agents", "may_write": rooms.may(request, "write_agent")}


@login_required
@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Every agent as new runs get it."""
    uses = agent_refs.uses()
    rows = Agent.objects.filter(current=True).order_by("name").defer("source")
    items = [
        {"row": row, "use": uses.get(row.name, agent_refs.Use()), "limits": agent_refs.limits(row.limits or {})}
        for row in rows
    ]
    return render(request, "agents/list.html", {**base(request), "items": items})


@login_required
@require_safe
def one(request: HttpRequest, name: str, version: int | None = None) -> HttpResponse:
    """One version laid out, with its source, who delegates to it and which runs use it."""
    row = found(name, version)
    newest = row if row.current else found(name)
    now = timezone.now()
    history = list(Agent.objects.filter(name=name).order_by("-version").defer("prompt", "source")[:6])
    runs = Run.objects.filter(agent=name).order_by("-created_at", "-id").defer("spec", "final")[:RUNS_SHOWN]
    body, now_body = agent_source.body_of(row), agent_source.body_of(newest)
    shipped = agents.shipped() if name == agents.DEFAULT and row.current else None
    context = {
        "row": row,
        "newest": newest,
        "tools": [(tool, _TOOLS.get(tool, "")) for tool in row.tools],
        "limits": agent_refs.limits(row.limits or {}),
        "servers": agent_refs.servers(row),
        "policy_known": Policy.objects.filter(name=row.policy, current=True).exists(),
        "source": agent_source.source_of(row),
        "callers": agent_refs.delegating(name),
        "use": agent_refs.uses().get(name, agent_refs.Use()),
        "runs": [{"run": run, "state": states.state_of(run, now)} for run in runs],
        "notes": agent_refs.notes(name),
        "history": history[:5],
        "more": len(history) > 5,
        "differs": body != now_body,
        "unlike_shipped": shipped is not None and shipped != {**body, "prompt": row.prompt.strip()},
    }
    return render(request, "agents/one.html", {**base(request), **context})


@login_required
@require_safe
def history(request: HttpRequest, name: str) -> HttpResponse:
    """Every version with who, when, why, and what it changed."""
    rows = list(Agent.objects.filter(name=name).order_by("-version")[: VERSIONS_SHOWN + 1])
    if not rows:
        raise Http404("There is no agent of this name.")
    versions = [
        {
            "row": row,
            "before": before,
            "changes": agent_refs.told(agent_source.body_of(before), agent_source.body_of(row)) if before else [],
            "lines": policy_changes.lines(before.prompt, row.prompt) if before else [],
        }
        for row, before in zip(rows, [*rows[1:], None], strict=True)
    ][:VERSIONS_SHOWN]
    context = {"name": name, "newest": rows[0], "versions": versions, "cut": len(rows) > VERSIONS_SHOWN}
    return render(request, "agents/history.html", {**base(request), **context})


@login_required
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Any two, side by side; prompts line by line."""
    context = agent_refs.SIDES.facing(request.GET.get("a", ""), request.GET.get("b", ""))
    left, right = context["both"]
    if left and right:
        context["changes"] = agent_refs.told(left.body, right.body)
        context["lines"] = policy_changes.lines(left.body["prompt"], right.body["prompt"])
    status = 404 if context["unknown"] else 200
    return render(request, "agents/compare.html", {**base(request), **context}, status=status)


@login_required
@require_safe
def toml(request: HttpRequest, name: str, version: int) -> HttpResponse:
    """The source of one version as a file."""
    row = found(name, version)
    response = HttpResponse(agent_source.source_of(row).encode(), content_type="application/toml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{row.name}-v{row.version}.toml"'
    return response
