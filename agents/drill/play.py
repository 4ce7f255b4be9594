"""Plays the scenarios through the loop itself over real HTTP, and counts what each of them cost."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agents import kinds, providers
from agents.drill.scenarios import SCENARIOS
from agents.drill.scenarios.tour import CHOICES
from agents.drill.script import Scenario
from agents.drill.server import DrillServer
from agents.engine.alone import LoneRun, Setting
from agents.events import Event
from agents.policy.limits import limits_from
from agents.spec import DEFAULT_PROMPT, Limits, ModelSpec, Status
from agents.tools.registry import Registry, default_tools

GUARDS = ("off", "ladder", "ladder-keyed", "strict", "default", "all")
# Without a guard nothing ends a loop, so the drill does.
OFF_STEPS = 40
_AT_ONCE = 4


@dataclass(slots=True, kw_only=True)
class Count:
    """What the runs of one scenario under one guard add up to; sub-agents included. Cost None = unknown."""

    tool_executions: int = 0
    model_calls: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    outcomes: Counter[str] = field(default_factory=Counter)

    def see(self, event: Event, body: bytes) -> None:
        match event.data:
            case kinds.CallStarted(operation="execute_tool"):
                self.tool_executions += 1
            case kinds.CallCompleted(operation="chat", usage=usage, cost_usd=cost):
                self._model_call(usage or {}, cost)
            case kinds.CallRetried(usage=usage, cost_usd=cost):
                self._model_call(usage or {}, cost)

    def _model_call(self, usage: Any, cost: str | None) -> None:
        self.model_calls += 1
        self.tokens += sum(usage.get(name) or 0 for name in ("input", "cache_read", "cache_write", "output"))
        self.cost = None if cost is None or self.cost is None else self.cost + Decimal(cost)

    def ended(self, status: Status | None, guard: str, final: str) -> None:
        capped = guard == "off" and status is Status.TRIPPED and "max_steps" in final
        self.outcomes["capped" if capped else status.value if status else "lost"] += 1


def chosen(name: str | None) -> list[Scenario]:
    """The named scenario, or all that have a kind. Raises KeyError."""
    return [SCENARIOS[name]] if name else [scenario for scenario in SCENARIOS.values() if scenario.kind]


def play(scenarios: Sequence[Scenario], *, runs: int = 1, guard: str = "off") -> list[dict[str, Any]]:
    """Play each scenario so many times, a few at once; the rows of the contract, in the order given."""
    with DrillServer() as server:
        return asyncio.run(_play(scenarios, runs, guard, server.base_url))


async def _play(scenarios: Sequence[Scenario], runs: int, guard: str, base_url: str) -> list[dict[str, Any]]:
    counts = [Count() for _ in scenarios]
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(scenario: Scenario, count: Count) -> None:
        async with room:
            await _run(scenario, count, guard, base_url)

    try:
        async with asyncio.TaskGroup() as group:
            for scenario, count in zip(scenarios, counts, strict=True):
                for _ in range(runs):
                    group.create_task(one(scenario, count))
    finally:
        await providers.close()
    return [_row(scenario, count, guard, runs) for scenario, count in zip(scenarios, counts, strict=True)]


async def _run(scenario: Scenario, count: Count, guard: str, base_url: str) -> None:
    spec = ModelSpec(model=scenario.name, base_url=base_url)
    with tempfile.TemporaryDirectory(prefix="pilothouse-drill-", ignore_cleanup_errors=True) as workspace:
        setting = Setting(
            task=scenario.task,
            model=spec,
            prompt=DEFAULT_PROMPT,
            tools=Registry(default_tools()).only(scenario.tools),
            workspace=workspace,
            limits=limits_from({"max_steps": OFF_STEPS}, "drill") if guard == "off" else Limits(),
            policy=guard,
        )
        run = LoneRun(setting, providers.connect(spec, None), count.see, _operator)
        ended = await run.drive()
    count.ended(ended.status, guard, ended.final)


async def _operator(question: str, choices: Sequence[str]) -> tuple[str, str]:
    return (choices or CHOICES)[0], "drill"


def _row(scenario: Scenario, count: Count, guard: str, runs: int) -> dict[str, Any]:
    alike = len(count.outcomes) == 1
    outcome = ", ".join(name if alike else f"{name} {number}" for name, number in count.outcomes.most_common())
    return {
        "scenario": scenario.name,
        "kind": scenario.kind,
        "guard": guard,
        "runs": runs,
        "tool_executions": count.tool_executions,
        "model_calls": count.model_calls,
        "tokens": count.tokens,
        "cost_usd": None if count.cost is None else f"{count.cost:f}",
        "outcome": outcome,
    }
