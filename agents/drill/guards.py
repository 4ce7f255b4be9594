"""The guards that a drill is played under: the shipped policies, the ladder with identity rules, and none."""

from collections.abc import Mapping
from typing import Any

from agents.errors import ConfigError
from agents.policy.policies import shipped

GUARDS = ("off", "ladder", "ladder-keyed", "strict", "default")
ALL = "all"
# What somebody who knows these tools would write down by hand: what names an invoice, and what is there to be repeated.
IDENTITY: Mapping[str, Any] = {"get_invoice": ["invoice_id"], "job_status": False, "next_page": False}


def guards(name: str) -> tuple[str, ...]:
    """The guard of this name, or all. Raises ConfigError `unknown_guard`."""
    if name == ALL:
        return GUARDS
    if name not in GUARDS:
        raise ConfigError("unknown_guard", f"There is no guard {name}; there are {', '.join((*GUARDS, ALL))}.")
    return (name,)


def body_of(guard: str) -> dict[str, Any]:
    """The policy behind a guard, as data."""
    if guard != "ladder-keyed":
        return shipped(guard)
    body = shipped("ladder")
    return {**body, "ladder": {**body["ladder"], "identity": dict(IDENTITY)}}
