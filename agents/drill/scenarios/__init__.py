"""The scenarios by name, and how any of them answers: summary, finish on request, or its own next step."""

from collections.abc import Mapping
from dataclasses import replace

from agents.drill.scenarios import batch, bench, chat, family, flaky, healthy, invoice, runaway, slow, tour, tree
from agents.drill.script import Conversation, Reply, Scenario, acknowledge, summary

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        tour.TOUR,
        slow.SLOW,
        runaway.RUNAWAY,
        batch.BATCH,
        family.FAMILY,
        family.CHILD,
        tree.TREE,
        chat.CHAT,
        bench.BENCH,
        *invoice.INVOICES,
        flaky.FLAKY,
        *healthy.HEALTHY,
    )
}


def chosen(name: str | None) -> list[Scenario]:
    """The named scenario, all variants of a named family, or all that have a kind. Empty if there is none."""
    if name is None:
        return [scenario for scenario in SCENARIOS.values() if scenario.kind]
    if name in SCENARIOS:
        return [SCENARIOS[name]]
    return list(invoice.INVOICES) if name == invoice.FAMILY else []


def reply(scenario: Scenario, conversation: Conversation) -> Reply:
    """The model's next message. Notes are acknowledged in their own words; those that say so end the work."""
    if scenario.needs_tools and not conversation.offered:
        return summary(conversation, scenario.goal)
    if conversation.told_to_finish and conversation.answers:
        text = f"I stop here as you asked, after {len(conversation.steps)} calls. What is left: {scenario.goal}."
        return Reply(text=acknowledge(conversation.notes[-1:], text))
    said = scenario.play(conversation)
    if (
        scenario.kind == "healthy"
        and scenario.own_tools()
        and any(c.name not in conversation.offered for c in said.calls)
    ):
        return summary(conversation, scenario.goal)
    return replace(said, text=acknowledge(conversation.fresh, said.text)) if conversation.fresh else said
