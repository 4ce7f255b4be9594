"""Which policies there are, named as `name`, `name@3` or `name@shipped`; who uses them and which runs hold them."""

from collections import Counter

from agents.policy.policies import NAMES, shipped, shipped_text
from agents.spec import ACTIVE
from control.dashboard.sides import Sides
from control.fleet import policies, policy_source
from control.fleet.models import Agent, Policy
from control.runs.models import Run

_ACTIVE = [status.value for status in ACTIVE]

SIDES = Sides(
    model=Policy,
    body_of=lambda row: row.body,
    source_of=policy_source.source_of,
    shipped_names=NAMES,
    shipped=lambda name: (shipped(name), shipped_text(name)),
)


def origins(rows: list[Policy]) -> dict[str, policies.Origin]:
    return {row.name: policies.origin_of(row) for row in rows}


def agents_by_policy() -> dict[str, list[str]]:
    """Which agents start runs with which policy."""
    found: dict[str, list[str]] = {}
    for name, policy in Agent.objects.filter(current=True).order_by("name").values_list("name", "policy"):
        found.setdefault(policy, []).append(name)
    return found


def runs_by_version() -> dict[str, Counter[int | None]]:
    """How many runs that have not ended hold which version of which policy; None for one of a run's own."""
    found: dict[str, Counter[int | None]] = {}
    held = Run.objects.filter(status__in=_ACTIVE).values_list("policy", "spec__policy_version")
    for policy, version in held.iterator():
        found.setdefault(policy, Counter())[version if isinstance(version, int) else None] += 1
    return found
