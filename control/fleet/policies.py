"""Policies by name, what makes one usable, and the four that are there from the first start."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.errors import ConfigError
from agents.policy import approvals
from agents.policy.limits import limits_from
from agents.policy.policies import NAMES, policy_from, shipped
from agents.policy.switches import check_switches
from agents.spec import LIMIT_NAMES
from control.fleet.models import Policy

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
BAD_NAME = "A name starts with a letter or digit and goes on with letters, digits, dots, dashes, underscores (100)."
LARGEST = 100_000
SHIPPER = "pilothouse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whether a policy ships: `shipped` as it stands, `changed` here, `outdated` (never changed here, and this release
    ships another one), or `own`."""

    word: str

    @property
    def ships(self) -> bool:
        return self.word != "own"


def current(name: str) -> Policy | None:
    """The version of a policy that new runs start with."""
    return Policy.objects.filter(name=name, current=True).first()


def origin_of(row: Policy) -> Origin:
    if row.name not in NAMES:
        return Origin(word="own")
    if row.body == shipped(row.name):
        return Origin(word="shipped")
    return Origin(word="outdated" if row.created_by == SHIPPER else "changed")


def ensure_shipped() -> None:
    """Make the shipped policies that were never saved."""
    for name in NAMES:
        if Policy.objects.filter(name=name).exists():
            continue
        try:
            with transaction.atomic():
                Policy.objects.create(name=name, body=shipped(name), created_at=timezone.now(), created_by=SHIPPER)
        except IntegrityError:
            # Another process migrates at the same time and was faster.
            continue


def limits_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fuses of a policy that are limits of a run, of a checked policy the tighter of `fuses` and `stop_when`."""
    tables = [given for table in ("fuses", "stop_when") if isinstance(given := body.get(table), Mapping)]
    found = {name: [table[name] for table in tables if table.get(name) is not None] for name in LIMIT_NAMES}
    return {name: min(values) for name, values in found.items() if values}


def check(body: Mapping[str, Any]) -> None:
    """Whether runs could follow it. Raises ConfigError, whose message names the place and what is right there."""
    try:
        size = len(json.dumps(body, allow_nan=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):
        what = "A policy holds texts, numbers, true and false, lists and tables; this one holds something else."
        raise ConfigError("bad_policy", what) from None
    if size > LARGEST:
        raise ConfigError("bad_policy", f"A policy has at most {LARGEST} bytes of JSON; this one has {size}.")
    if not _is_storable(body):
        raise ConfigError("bad_policy", "The policy holds a NUL or half a character; leave these out.")
    policy_from(body, "checked")
    limits_from(limits_of(body), "policy")
    approvals.rules_of(body)
    check_switches(body)


def _is_storable(value: Any) -> bool:
    """Whether every text in it can be kept by every database."""
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, Mapping):
        return all(_is_storable(name) and _is_storable(item) for name, item in value.items())
    return all(map(_is_storable, value)) if isinstance(value, list) else True
