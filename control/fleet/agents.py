"""Agents by name, and the one that is there from the first start."""

import tomllib
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from control.fleet import agent_source
from control.fleet.models import Agent

SHIPPED = Path(__file__).parent / "shipped"
DEFAULT = "default"


def current(name: str) -> Agent | None:
    """The version of an agent that new runs start with."""
    return Agent.objects.filter(name=name, current=True).first()


def shipped() -> dict[str, Any]:
    """The agent `default` as this release ships it, as data."""
    given: dict[str, Any] = tomllib.loads((SHIPPED / "agent.toml").read_text(encoding="utf-8"))
    return {**agent_source.DEFAULTS, **given, "prompt": given["prompt"].strip()}


def ensure_default() -> None:
    """Make the agent `default` unless one of that name was ever saved."""
    if Agent.objects.filter(name=DEFAULT).exists():
        return
    given = shipped()
    try:
        with transaction.atomic():
            Agent.objects.create(
                name=DEFAULT,
                prompt=given["prompt"],
                tools=given["tools"],
                created_at=timezone.now(),
                created_by="pilothouse",
            )
    except IntegrityError:
        # Another process migrates at the same time and was faster.
        return
