"""The pages that show policies: the list, one policy, its versions, two side by side, and what a run holds frozen."""

from collections import Counter
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from agents.policy.policies import NAMES, shipped
from control.accounts.roles import of_request
from control.dashboard import policy_changes, policy_refs, policy_sheet
from control.dashboard.views.run import find as find_run
from control.fleet import policies, policy_source
from control.fleet.models import Policy

VERSIONS_SHOWN = 200


def found(name: str, version: int | None = None) -> Policy:
    row = policy_refs.SIDES.find(name, version)
    if row is None:
        raise Http404("There is no policy of this name and version.")
    return row


def may_write(request: HttpRequest) -> bool:
    actor = of_request(request)
    return bool(actor and actor.may("write_policy"))


def base(request: HttpRequest) -> dict[str, Any]:
    """What every page of policies knows."""
    return {"section": "policies", "may_write": may_write(request)}


@login_required
def listing(request: HttpRequest) -> HttpResponse:
    """Every policy as new runs get it."""
    agents, runs = policy_refs.agents_by_policy(), policy_refs.runs_by_version()
    rows = list(Policy.objects.filter(current=True).order_by("name"))
    # What ships comes first, in the order in which it is meant: the one that is on unless chosen otherwise at the top.
    order = {"default": 0, "ladder": 1, "strict": 2, "off": 3}
    rows.sort(key=lambda row: (order.get(row.name, 9), row.name))
    items = [
        {
            "row": row,
            "sheet": policy_sheet.sheet_of(row.body, row.name),
            "origin": policies.origin_of(row),
            "agents": agents.get(row.name, []),
            "runs": sum(runs.get(row.name, {}).values()),
        }
        for row in rows
    ]
    return render(request, "policies/list.html", {**base(request), "items": items})


@login_required
def one(request: HttpRequest, name: str, version: int | None = None) -> HttpResponse:
    """One version laid out, with its source, and who uses it."""
    row = found(name, version)
    newest = row if row.current else found(name)
    held = policy_refs.runs_by_version().get(name, Counter())
    history = list(Policy.objects.filter(name=name).order_by("-version").defer("body", "source")[:6])
    context = {
        "row": row,
        "newest": newest,
        "sheet": policy_sheet.sheet_of(row.body, name),
        "origin": policies.origin_of(row),
        "source": policy_source.source_of(row),
        "agents": policy_refs.agents_by_policy().get(name, []),
        "held": sorted(held.items(), key=lambda item: -(item[0] or 0)),
        "history": history[:5],
        "more": len(history) > 5,
        "differs": len(policy_changes.changes(row.body, newest.body)) if row is not newest else 0,
        "from_shipped": len(policy_changes.changes(shipped(name), row.body)) if name in NAMES else 0,
    }
    return render(request, "policies/one.html", {**base(request), **context})


@login_required
def history(request: HttpRequest, name: str) -> HttpResponse:
    """Every version with who, when, why, and what it changed."""
    rows = list(Policy.objects.filter(name=name).order_by("-version")[: VERSIONS_SHOWN + 1])
    if not rows:
        raise Http404("There is no policy of this name.")
    held = policy_refs.runs_by_version().get(name, Counter())
    versions = [
        {
            "row": row,
            "before": before,
            "changes": policy_changes.changes(before.body, row.body) if before else [],
            "runs": held.get(row.version, 0),
        }
        for row, before in zip(rows, [*rows[1:], None], strict=True)
    ][:VERSIONS_SHOWN]
    context = {"name": name, "newest": rows[0], "versions": versions, "cut": len(rows) > VERSIONS_SHOWN}
    return render(request, "policies/history.html", {**base(request), **context})


@login_required
def compare(request: HttpRequest) -> HttpResponse:
    """Any two, side by side: what differs, or everything with `all=1`."""
    context = policy_refs.SIDES.facing(request.GET.get("a", ""), request.GET.get("b", ""))
    context["all"] = "all" in request.GET
    left, right = context["both"]
    if left and right:
        every = policy_changes.compared(left.body, right.body)
        differing = [change for change in every if change.kind != "same"]
        context |= {
            "groups": policy_changes.grouped(every if context["all"] else differing),
            "differing": len(differing),
            "same": len(every) - len(differing),
            "lines": policy_changes.lines(left.source, right.source) if not differing else [],
        }
    return render(
        request, "policies/compare.html", {**base(request), **context}, status=404 if context["unknown"] else 200
    )


@login_required
def toml(request: HttpRequest, name: str, version: int) -> HttpResponse:
    """The source of one version as a file."""
    row = found(name, version)
    response = HttpResponse(policy_source.source_of(row).encode(), content_type="application/toml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{row.name}-v{row.version}.toml"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@login_required
def frozen(request: HttpRequest, run_id: str) -> HttpResponse:
    """The policy that a run holds, word for word as it was when the run began."""
    run = find_run(run_id)
    spec = run.spec if isinstance(run.spec, dict) else {}
    body, version = spec.get("policy_body") or {}, spec.get("policy_version")
    kept = policy_refs.SIDES.find(run.policy, version) if isinstance(version, int) else None
    context = {
        "run": run,
        "row": kept if kept is not None and kept.body == body else None,
        "sheet": policy_sheet.sheet_of(body, run.policy),
        "source": policy_source.source_of(kept) if kept and kept.body == body else policy_source.written(body),
        "version": version,
    }
    return render(request, "policies/frozen.html", {**base(request), "section": "run", **context})
