"""What is there from the first start: the agent and the four policies."""

import pytest

from control.fleet import agents, policies
from control.fleet.models import Agent, Policy

pytestmark = pytest.mark.django_db


def test_the_four_policies_and_the_agent_are_there() -> None:
    assert set(Policy.objects.values_list("name", flat=True)) == {"strict", "ladder", "default", "off"}
    agent = agents.current("default")
    assert agent is not None and len(agent.tools) == 9 and agent.policy == "default"


def test_making_them_again_changes_nothing() -> None:
    before = list(Agent.objects.values()) + list(Policy.objects.values())
    policies.ensure_shipped()
    agents.ensure_default()
    assert list(Agent.objects.values()) + list(Policy.objects.values()) == before


def test_a_policy_that_someone_changed_is_left_alone() -> None:
    Policy.objects.filter(name="strict").update(body={"fuses": {"max_steps": 99}})
    policies.ensure_shipped()
    strict = policies.current("strict")
    assert strict is not None and policies.limits_of(strict.body) == {"max_steps": 99}


def test_the_strict_policy_has_its_numbers() -> None:
    strict = policies.shipped("strict")["fuses"]
    assert strict == {"max_tokens": 80_000, "max_steps": 12, "max_identical_calls": 2, "max_oscillations": 2}
    ladder = policies.shipped("ladder")["ladder"]
    assert (ladder["observe"], ladder["block"], ladder["stop"]) == (2, 3, 6)
