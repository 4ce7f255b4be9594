"""A run's start as a command to paste: the same body in a shell and in PowerShell, and the place of the key named."""

import json
import shlex
from typing import Any

from agents.policy.redaction import make_safe_value
from control.runs.models import Run


def body_of(run: Run) -> str:
    """What would start it again. ASCII without a single quote, so that no shell has anything to change in it."""
    spec: dict[str, Any] = run.spec if isinstance(run.spec, dict) else {}
    model = spec.get("model")
    named = model if isinstance(model, dict) else {}
    body = {
        "agent": run.agent,
        "task": run.task,
        "model": named.get("model"),
        "base_url": named.get("base_url"),
        "policy": run.policy,
        "labels": run.labels,
        "project": run.project,
        "dry_run": spec.get("dry_run") or None,
    }
    given = {name: value for name, value in body.items() if value not in (None, "", {})}
    return json.dumps(make_safe_value(given).value).replace("'", "\\u0027")


def commands(run: Run, url: str) -> dict[str, str]:
    """`sh` and `powershell`; both take the key from the environment and have none in them."""
    body = body_of(run)
    return {
        "sh": f'curl -sS -X POST {shlex.quote(url)} -H "Authorization: Bearer $PILOTHOUSE_TOKEN" '
        f"-H 'Content-Type: application/json' --data-raw '{body}'",
        "powershell": f"Invoke-RestMethod -Method Post -Uri '{url}' "
        '-Headers @{ Authorization = "Bearer $env:PILOTHOUSE_TOKEN" } '
        f"-ContentType 'application/json' -Body '{body}'",
    }
