"""What judging costs: linear in the size of a call, the same late in a run as early. Ratios, for machines differ."""

import time

from agents.policy.asked import Answered, Asked
from agents.policy.guard import Guard
from tests.agents.policy.guarding import policy

LINE = "a line of some code with words = value(argument)\n"


def _step(guard: Guard, n: int, size: int) -> float:
    text = f"{n} " + (LINE * (size // len(LINE) + 1))[: size - 60]
    began = time.process_time()
    guard.judge(Asked(call=n, batch=n, tool="read_file", args={"path": f"src/module_{n}.py", "limit": 200}))
    guard.observe(n, Answered(text=text))
    return time.process_time() - began


def _cost(guard: Guard, first: int, size: int, steps: int = 300) -> float:
    """The quiet tenth of several rounds: other work on the machine only ever adds."""
    times = sorted(_step(guard, n, size) for n in range(first, first + steps))
    return sum(times[: steps // 2]) / (steps // 2)


def test_late_call_costs_what_an_early_one_does() -> None:
    guard = Guard(policy())
    early = min(_cost(guard, 1, 500), _cost(guard, 301, 500))
    for n in range(601, 5_000):
        _step(guard, n, 200)
    late = min(_cost(guard, 5_000, 500), _cost(guard, 5_300, 500))
    assert late < 2 * early


def test_cost_grows_no_faster_than_the_size() -> None:
    small = min(_cost(Guard(policy()), 1, 500) for _ in range(2))
    large = min(_cost(Guard(policy()), 1, 8_000, 100) for _ in range(2))
    assert large < 16 * small
    assert small < 0.001
