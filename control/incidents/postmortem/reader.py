"""Gathers from the database what a postmortem is folded from: the log, kept contents, policies, alerts, neighbours."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

from agents.policy.policies import shipped
from agents.policy.sequences import ContentOf
from control.fleet import credentials
from control.fleet.models import Agent, Policy
from control.incidents.models import Delivery, Incident, IncidentNote
from control.incidents.postmortem.facts import Alert, Allowance, Facts, NamedPolicy, Neighbour
from control.incidents.postmortem.report import Opened
from control.incidents.postmortem.words import told
from control.runs import artifacts, log, specs
from control.runs.models import Artifact, Command, Run

PAGE = 2_000
# What a run is held against: the policies that ship, as they stand now.
COMPARED = ("default", "strict", "ladder")
_ARTIFACT = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_AHEAD, _AT_ONCE = 262_144, 500
_NEAR = timedelta(days=7)


def facts_of(run: Run, circumstances: Mapping[str, Any] | None = None) -> Facts:
    """Everything that `fold.report_of` takes. Reads the whole log: about 20 ms per thousand events."""
    bodies = list(_bodies(run.pk))
    around = circumstances_of(run) if circumstances is None else circumstances
    return Facts(run=run.pk, bodies=bodies, content_of=_contents(bodies), **around)


def circumstances_of(run: Run) -> dict[str, Any]:
    """What other rows than the log's know of the run."""
    return {
        "agent": run.agent,
        "task": run.task,
        "project": run.project,
        "status": run.status,
        "exit_reason": run.exit_reason,
        "policy": run.policy,
        "policies": _policies(run),
        "alerts": _alerts(run.pk),
        "incidents": _incidents(run.pk),
        "neighbours": _neighbours(run),
        "allowances": _allowances(run),
        "stop_requested_at": _asked_at(run),
    }


def _bodies(run: str) -> Iterable[bytes]:
    after = 0
    while page := log.read_after(run, after, PAGE):
        yield from page
        after += len(page)


def _contents(bodies: list[bytes]) -> ContentOf:
    """Contents by reference. Small ones of edits are fetched ahead, many at a time; others when asked for."""
    wanted: set[str] = set()
    for body in bodies:
        if b'"kind":"edit.recorded"' in body:
            wanted.update(found.decode() for found in _ARTIFACT.findall(body))
    known: dict[str, bytes | None] = {}
    listed = sorted(wanted)
    for start in range(0, len(listed), _AT_ONCE):
        part = listed[start : start + _AT_ONCE]
        rows = Artifact.objects.filter(pk__in=part, size__lte=_AHEAD).values_list("sha256", "content")
        known.update((sha, bytes(content)) for sha, content in rows)

    def content(reference: Mapping[str, Any]) -> bytes | None:
        sha = str(reference.get("sha256"))
        if sha not in known:
            try:
                found: bytes | None = artifacts.get(sha)
            except (LookupError, FileNotFoundError):
                found = None
            if found is not None and len(found) > _AHEAD:
                return found
            known[sha] = found
        return known[sha]

    return content


def _policies(run: Run) -> list[NamedPolicy]:
    spec = run.spec if isinstance(run.spec, dict) else {}
    own = NamedPolicy(name=run.policy, version=spec.get("policy_version"), body=spec.get("policy_body") or {}, own=True)
    names = [*COMPARED, *([run.policy] if run.policy not in (*COMPARED, "off") else [])]
    rows = {row.name: row for row in Policy.objects.filter(current=True, name__in=names).defer("source")}
    found = []
    for name in names:
        if name in rows:
            found.append(NamedPolicy(name=name, version=rows[name].version, body=rows[name].body))
        elif name in COMPARED:
            found.append(NamedPolicy(name=name, version=None, body=shipped(name)))
    return [*found, own]


def _alerts(run: str) -> list[Alert]:
    found: list[Alert] = []
    for incident in Incident.objects.filter(run_id=run).order_by("opened_at"):
        text = f"incident opened ({incident.severity}): {told(incident.title, 120)}"
        found.append(Alert(at=incident.opened_at, kind="opened", text=text))
    notes = IncidentNote.objects.filter(incident__run_id=run).exclude(by="").order_by("at")
    for note in notes:
        said = f": {told(note.text, 120)}" if note.text else ""
        text = f"an operator wrote{said}" if note.kind == "comment" else f"incident {note.kind} by an operator{said}"
        found.append(Alert(at=note.at, kind=note.kind, text=text, by_person=True))
    sent = Delivery.objects.filter(incident__run_id=run, done_at__isnull=False).select_related("route")
    for one in sent.order_by("done_at"):
        if one.done_at is None or one.state not in (Delivery.State.DELIVERED, Delivery.State.FAILED):
            continue
        arrived = one.state == Delivery.State.DELIVERED
        kind = ("delivered" if arrived else "undelivered") if one.action == Delivery.Action.TRIGGER else "told"
        word = "sent" if arrived else "not delivered"
        code = f" · {one.code}" if one.code else ""
        found.append(Alert(at=one.done_at, kind=kind, text=f"{one.route.transport} {one.action} {word}{code}"))
    return sorted(found, key=lambda one: one.at)


def _incidents(run: str) -> list[Opened]:
    rows = Incident.objects.filter(run_id=run).order_by("opened_at", "id")
    return [
        Opened(id=row.pk, rule=row.rule, severity=row.severity, state=row.state, title=told(row.title, 120))
        for row in rows
    ]


def _neighbours(run: Run) -> list[Neighbour]:
    """Other runs in the same directory, or on the same branch of one repository, within a week before the end. The
    run's own family shares on purpose."""
    spec = run.spec if isinstance(run.spec, dict) else {}
    place = spec.get("workspace") or {}
    if place.get("kind") not in ("directory", "worktree") or run.finished_at is None:
        return []
    alone = place["kind"] == "directory"
    names = ("path",) if alone else ("source", "branch")
    rows = (
        Run.objects.filter(created_at__gte=run.created_at - _NEAR, created_at__lte=run.finished_at)
        .exclude(root=run.root)
        .filter(**{f"spec__workspace__{name}": place.get(name) for name in names})
        .filter(started_at__isnull=False, started_at__lt=run.finished_at)
        .order_by("-created_at")
        .values_list("pk", "agent", "finished_at")[:20]
    )
    begun = run.started_at or run.created_at
    return [
        Neighbour(run=pk, agent=agent, overlaps=finished is None or finished > begun) for pk, agent, finished in rows
    ]


def _allowances(run: Run) -> list[Allowance]:
    """Limits of money that hold for a day, a month or for good, as they stand now."""
    found = []
    try:
        pool = credentials.pool_of(specs.of(run).model)
    except (credentials.CredentialError, KeyError, TypeError, ValueError):
        pool = ()
    for one in pool:
        if one.limit_usd is not None:
            per = one.per or "lifetime of the key"
            found.append(Allowance(what=f"credential {one.label}", limit=f"{one.limit_usd:f}", per=per))
    agent = Agent.objects.filter(name=run.agent, current=True).only("limits").first()
    day = (agent.limits or {}).get("max_cost_per_day") if agent is not None else None
    day = day if day is not None else settings.AGENT_DAY_LIMITS.get("max_cost_per_day")
    if day is not None:
        found.append(Allowance(what=f"agent {run.agent}", limit=str(day), per="day"))
    fleet = settings.FLEET_DAY_LIMITS.get("max_cost_per_day")
    if fleet is not None:
        found.append(Allowance(what="the fleet", limit=str(fleet), per="day"))
    return found


def _asked_at(run: Run) -> Any:
    """When the stop was asked for that ended it; None if it ended otherwise."""
    if run.stop_command is None:
        return None
    return Command.objects.filter(pk=run.stop_command).values_list("issued_at", flat=True).first()
