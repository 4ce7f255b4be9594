"""A RunSpec as JSON and back: what is frozen into a run's row when it starts."""

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from agents.spec import LIMIT_NAMES, Limit, Limits, ModelSpec, RunSpec, WorkspaceKind, WorkspaceSpec
from control.runs.models import Run


def of(run: Run) -> RunSpec:
    """The frozen spec of a run."""
    return from_json(run.spec)


def to_json(spec: RunSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "root": spec.root,
        "parent": spec.parent,
        "path": list(spec.path),
        "agent": spec.agent,
        "task": spec.task,
        "prompt": spec.prompt,
        "tools": list(spec.tools),
        "memory": list(spec.memory),
        "mcp_servers": [dict(server) for server in spec.mcp_servers],
        "model": _model_to_json(spec.model),
        "fallbacks": [_model_to_json(model) for model in spec.fallbacks],
        "limits": limits_to_json(spec.limits),
        "policy": spec.policy,
        "policy_version": spec.policy_version,
        "policy_body": dict(spec.policy_body),
        "workspace": _workspace_to_json(spec.workspace),
        "labels": dict(spec.labels),
        "dry_run": spec.dry_run,
        "recorded": dict(spec.recorded) if spec.recorded else None,
    }


def from_json(raw: Mapping[str, Any]) -> RunSpec:
    """Fields that this version does not know are ignored, so that a newer row can still be read."""
    return RunSpec(
        id=raw["id"],
        root=raw["root"],
        parent=raw["parent"],
        path=tuple(raw["path"]),
        agent=raw["agent"],
        task=raw["task"],
        prompt=raw["prompt"],
        tools=tuple(raw["tools"]),
        model=_model_from_json(raw["model"]),
        memory=tuple(raw.get("memory", ())),
        mcp_servers=tuple(raw.get("mcp_servers", ())),
        # Rows from before there were fallbacks have none.
        fallbacks=tuple(_model_from_json(model) for model in raw.get("fallbacks", ())),
        limits=limits_from_json(raw["limits"]),
        policy=raw["policy"],
        policy_version=raw.get("policy_version"),
        policy_body=raw.get("policy_body", {}),
        workspace=_workspace_from_json(raw["workspace"]),
        labels=raw["labels"],
        dry_run=raw["dry_run"],
        recorded=raw.get("recorded"),
    )


def limits_to_json(limits: Limits) -> dict[str, dict[str, str]]:
    """`{name: {"value": decimal string, "source": word}}` of the limits that are set."""
    found = {name: getattr(limits, name) for name in LIMIT_NAMES}
    return {
        name: {"value": format(limit.value, "f"), "source": limit.source}
        for name, limit in found.items()
        if limit is not None
    }


def limits_from_json(raw: Mapping[str, Mapping[str, str]]) -> Limits:
    return Limits(**{name: Limit(value=Decimal(given["value"]), source=given["source"]) for name, given in raw.items()})


def _model_to_json(model: ModelSpec) -> dict[str, Any]:
    return {
        "model": model.model,
        "base_url": model.base_url,
        "provider": model.provider,
        "credential": model.credential,
        "max_output_tokens": model.max_output_tokens,
        "window": model.window,
        "keyless": model.keyless,
    }


def _model_from_json(raw: Mapping[str, Any]) -> ModelSpec:
    names = {field.name for field in fields(ModelSpec)}
    return ModelSpec(**{name: value for name, value in raw.items() if name in names})


def _workspace_to_json(workspace: WorkspaceSpec | None) -> dict[str, Any] | None:
    if workspace is None:
        return None
    return {
        "path": workspace.path,
        "kind": workspace.kind.value,
        "branch": workspace.branch,
        "source": workspace.source,
        "start": workspace.start,
    }


def _workspace_from_json(raw: Mapping[str, Any] | None) -> WorkspaceSpec | None:
    if raw is None:
        return None
    return WorkspaceSpec(
        path=raw["path"],
        kind=WorkspaceKind(raw["kind"]),
        branch=raw["branch"],
        source=raw["source"],
        start=raw.get("start"),
    )
