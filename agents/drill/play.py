"""Plays the scenarios through the loop itself over real HTTP, and counts what each of them cost."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from agents import kinds, providers
from agents.drill.guards import body_of
from agents.drill.scenarios.projects import environment
from agents.drill.scenarios.tour import CHOICES
from agents.drill.script import Scenario
from agents.drill.server import DrillServer
from agents.engine.alone import LoneRun, Setting
from agents.events import Event
from agents.ids import new_id
from agents.policy.limits import limits_from, of_policy, tightest
from agents.spec import DEFAULT_PROMPT, Limits, ModelSpec, Status, WorkspaceKind, WorkspaceSpec
from agents.tools import workspace
from agents.tools.registry import Registry, default_tools

# Without a guard nothing ends a loop, so the drill does; with one it does too, so that all are measured alike.
CAP_STEPS = 40
_CAP = "drill"
_AT_ONCE = 4


@dataclass(slots=True, kw_only=True)
class Count:
    """What the runs of one scenario under one guard add up to; sub-agents included. Cost None = unknown.

    `fuses`: run -> the fuse that ended it.
    """

    tool_executions: int = 0
    model_calls: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    outcomes: Counter[str] = field(default_factory=Counter)
    fuses: dict[str, str | None] = field(default_factory=dict)

    def see(self, event: Event, body: bytes) -> None:
        match event.data:
            case kinds.CallStarted(operation="execute_tool"):
                self.tool_executions += 1
            case kinds.CallCompleted(operation="chat", usage=usage, cost_usd=cost):
                self._model_call(usage or {}, cost)
            case kinds.CallRetried(usage=usage, cost_usd=cost):
                self._model_call(usage or {}, cost)
            case kinds.RunTripped(fuse=fuse):
                self.fuses[event.run] = fuse

    def _model_call(self, usage: Any, cost: str | None) -> None:
        self.model_calls += 1
        self.tokens += sum(usage.get(name) or 0 for name in ("input", "cache_read", "cache_write", "output"))
        self.cost = None if cost is None or self.cost is None else self.cost + Decimal(cost)


def play(
    scenarios: Sequence[Scenario], *, guards: Sequence[str] = ("off",), runs: int = 1, cap: int | None = CAP_STEPS
) -> list[dict[str, Any]]:
    """Play each scenario so many times under each guard, a few at once; the rows of the contract, guard by guard.

    `cap`: tool steps after which a run is ended; None for none.
    """
    with DrillServer() as server:
        return asyncio.run(_play(scenarios, guards, runs, cap, server.base_url))


async def _play(
    scenarios: Sequence[Scenario], guards: Sequence[str], runs: int, cap: int | None, base_url: str
) -> list[dict[str, Any]]:
    plays = [(scenario, guard, Count()) for guard in guards for scenario in scenarios]
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(scenario: Scenario, guard: str, count: Count) -> None:
        async with room:
            await _run(scenario, count, guard, cap, base_url)

    try:
        async with asyncio.TaskGroup() as group:
            for scenario, guard, count in plays:
                for _ in range(runs):
                    group.create_task(one(scenario, guard, count))
    finally:
        await providers.close()
    return [_row(scenario, count, guard, runs) for scenario, guard, count in plays]


async def _run(scenario: Scenario, count: Count, guard: str, cap: int | None, base_url: str) -> None:
    spec = ModelSpec(model=scenario.name, base_url=base_url)
    policy, run = body_of(guard), new_id()
    with tempfile.TemporaryDirectory(prefix="pilothouse-drill-", ignore_cleanup_errors=True) as home:
        place = await asyncio.to_thread(_worktree, scenario, run, Path(home)) if scenario.project else None
        limits = tightest(of_policy(policy), limits_from({"max_steps": cap}, _CAP))
        setting = Setting(
            run=run,
            task=scenario.task,
            model=spec,
            prompt=DEFAULT_PROMPT,
            tools=tools_of(scenario),
            workspace=place.path if place else home,
            place=place,
            limits=limits,
            policy=guard,
            policy_body=policy,
            environment=environment(),
        )
        ended = await LoneRun(setting, providers.connect(spec, None), count.see, _operator).drive()
    count.outcomes[_outcome(ended.status, count.fuses.get(run), limits)] += 1


def tools_of(scenario: Scenario) -> Registry:
    return Registry(default_tools()).only(scenario.tools).extended(scenario.own_tools())


def _worktree(scenario: Scenario, run: str, home: Path) -> WorkspaceSpec:
    """The scenario's project in a repository of its own, and a worktree of that to play in."""
    source = home / "project"
    repository = WorkspaceSpec(path=str(source), kind=WorkspaceKind.FRESH)
    workspace.prepare(repository, run)
    for path, text in scenario.project.items():
        (source / path).write_text(text, encoding="utf-8")
    workspace.close(repository, run, message="The project as it is")
    tree = WorkspaceSpec(
        path=str(home / "worktree"), kind=WorkspaceKind.WORKTREE, branch=f"agent/{run}", source=str(source)
    )
    workspace.prepare(tree, run)
    return tree


def _outcome(status: Status | None, fuse: str | None, limits: Limits) -> str:
    """The run's status; `capped` where the drill's own cap has ended it."""
    if fuse == "max_steps" and limits.max_steps is not None and limits.max_steps.source == _CAP:
        return "capped"
    return status.value if status else "lost"


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
