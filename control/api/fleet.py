"""Routes of agents and policies: read the current version, save the next one."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from agents.errors import ConfigError
from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import TOML, answer, raw
from control.api.auth import Needs
from control.api.checks import check_agent, check_policy
from control.api.errors import ApiError, not_found
from control.api.outputs import AgentOut, AgentsOut, PoliciesOut, PolicyOut
from control.api.schemas import AgentIn, PolicyIn
from control.fleet import policy_source, versions
from control.fleet.models import Agent, Policy
from control.fleet.policies import BAD_NAME, NAME

router = Router(tags=["fleet"])


def agent_row(agent: Agent) -> dict[str, Any]:
    names = (
        "name",
        "version",
        "prompt",
        "tools",
        "model",
        "base_url",
        "credential",
        "fallbacks",
        "policy",
        "limits",
        "delegates_to",
        "mcp_servers",
    )
    return {name: getattr(agent, name) for name in names} | _made(agent)


def policy_row(policy: Policy) -> dict[str, Any]:
    row = {"name": policy.name, "version": policy.version, "body": policy.body, "reason": policy.reason}
    return row | _made(policy)


def _made(row: Agent | Policy) -> dict[str, Any]:
    return {"created_at": row.created_at, "created_by": row.created_by}


@router.get("/agents", auth=Needs("view"), response=AgentsOut, summary="The agents, current versions")
def agents(request: HttpRequest) -> HttpResponse:
    return answer({"agents": [agent_row(row) for row in Agent.objects.filter(current=True).order_by("name")]})


@router.get("/agents/{name}", auth=Needs("view"), response=AgentOut, summary="One agent, current version")
def agent(request: HttpRequest, name: str) -> HttpResponse:
    return answer(agent_row(_current(Agent, name)))


@router.put(
    "/agents/{name}", auth=Needs("write_agent"), response={200: AgentOut, 201: AgentOut}, summary="Save an agent"
)
def put_agent(request: HttpRequest, name: str, payload: AgentIn) -> HttpResponse:
    """Makes a new version; runs that have started keep theirs. 201 for a new name, 200 otherwise, with `changed`."""
    fields = payload.dict(exclude={"version", "limits", "fallbacks"}) | {
        "limits": payload.limits.given(),
        "fallbacks": [fallback.given() for fallback in payload.fallbacks],
    }
    act = Act(action="write_agent", target=f"agent:{name[:80]}")

    def work() -> Done:
        check_agent(fields, itself=name)
        return save(Agent, name, fields, by=actor_of(request).name, expected=payload.version)

    return perform(request, act, work)


@router.get("/policies", auth=Needs("view"), response=PoliciesOut, summary="The policies, current versions")
def policies(request: HttpRequest) -> HttpResponse:
    return answer({"policies": [policy_row(row) for row in Policy.objects.filter(current=True).order_by("name")]})


@router.get("/policies/{name}", auth=Needs("view"), response=PolicyOut, summary="One policy, current version")
def policy(request: HttpRequest, name: str) -> HttpResponse:
    """As TOML for a request with `Accept: application/toml`."""
    row = _current(Policy, name)
    if TOML in request.headers.get("Accept", ""):
        return raw(policy_source.source_of(row).encode(), content_type=f"{TOML}; charset=utf-8")
    return answer(policy_row(row))


@router.put(
    "/policies/{name}", auth=Needs("write_policy"), response={200: PolicyOut, 201: PolicyOut}, summary="Save a policy"
)
def put_policy(request: HttpRequest, name: str, payload: PolicyIn) -> HttpResponse:
    """Makes a new version; runs that have started keep theirs. A body of type `application/toml` is taken as it is."""
    act = Act(action="write_policy", target=f"policy:{name[:80]}", reason=payload.reason or None)

    def work() -> Done:
        fields = _policy_fields(payload)
        check_policy(fields["body"])
        about = {"reason": payload.reason}
        return save(Policy, name, fields, by=actor_of(request).name, expected=payload.version, about=about)

    return perform(request, act, work)


def _policy_fields(payload: PolicyIn) -> dict[str, Any]:
    """What came as TOML is kept word for word beside its data; data alone leaves what was typed before, if it fits."""
    if payload.toml is None:
        return {"body": payload.body}
    try:
        return {"body": policy_source.read(payload.toml), "source": payload.toml}
    except ConfigError as error:
        raise ApiError(error.kind, error.message, status=422) from error


def _current(model: type[versions.M], name: str) -> versions.M:
    row = versions.current(model, name) if "\x00" not in name else None
    if row is None:
        raise not_found(model.__name__.lower(), name)
    return row


def save(
    model: type[versions.M],
    name: str,
    fields: dict[str, Any],
    *,
    by: str,
    expected: int | None = None,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> Done:
    """One new version, as an act. Raises `bad_name` and `version_conflict`."""
    if not NAME.fullmatch(name):
        raise ApiError("bad_name", BAD_NAME, status=400)
    try:
        saved = versions.save(model, name, fields, by=by, expected=expected, about=about)
    except versions.VersionConflict as error:
        message = f"Version {error.current} is current by now. Read it again, apply your change to it, and save."
        raise ApiError("version_conflict", message, status=409, detail={"current": error.current}) from error
    row = _row(saved.row)
    return Done(
        body=row | {"changed": saved.changed},
        status=200 if saved.before else 201,
        result="ok" if saved.changed else "unchanged",
        before=_row(saved.before) if saved.before else None,
        after=row,
    )


def _row(row: Agent | Policy) -> dict[str, Any]:
    return agent_row(row) if isinstance(row, Agent) else policy_row(row)
