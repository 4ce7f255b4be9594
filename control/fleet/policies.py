"""Policies by name, and the four that are there from the first start: strict, ladder, default and off."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.policy.policies import NAMES, shipped
from agents.spec import LIMIT_NAMES
from control.fleet.models import Policy


def current(name: str) -> Policy | None:
    """The version of a policy that new runs start with."""
    return Policy.objects.filter(name=name, current=True).first()


def ensure_shipped() -> None:
    """Make the shipped policies that were never saved."""
    for name in NAMES:
        if Policy.objects.filter(name=name).exists():
            continue
        try:
            with transaction.atomic():
                Policy.objects.create(name=name, body=shipped(name), created_at=timezone.now(), created_by="pilothouse")
        except IntegrityError:
            # Another process migrates at the same time and was faster.
            continue


def limits_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fuses of a policy that are limits of a run; a policy may keep them under `fuses` or `stop_when`."""
    found: dict[str, Any] = {}
    for table in ("fuses", "stop_when"):
        given = body.get(table)
        if isinstance(given, Mapping):
            found.update({name: given[name] for name in LIMIT_NAMES if given.get(name) is not None})
    return found
