"""What the guard adds to a call: microseconds by kind and size, over parsing and checksumming the same bytes."""

from agents.policy.guard import Guard
from tests.agents.policy.costing import KINDS, floor, judged, mean
from tests.agents.policy.guarding import policy
from tests.bench.harness import say, spread

ROUNDS, STEPS, LONG = 7, 150, 400
SIZES = (500, 2_000, 8_000)


def judge() -> None:
    """CPU per judged call. The floor: `json.loads` and SHA-256 of its arguments and answer, in the same round."""
    for kind in KINDS:
        for size in SIZES:
            pairs = [(judged(Guard(policy()), kind, size, 1, STEPS), floor(kind, size, STEPS)) for _ in range(ROUNDS)]
            ours, ratio = spread([one for one, _ in pairs]), spread([one / bare for one, bare in pairs])
            say(
                f"{kind}, {size:,} bytes: {ours} µs, {ratio} x the floor, best {ours.low:.0f} µs; "
                f"mean over all calls {mean(kind, size, ROUNDS, LONG):.0f} µs"
            )
    for kind in KINDS:
        say(f"{kind}, 500 bytes: step 5,000 over step 10 {spread([_growth(kind) for _ in range(3)])} x")


def _growth(kind: str) -> float:
    guard = Guard(policy())
    early = judged(guard, kind, 500, 10, STEPS)
    judged(guard, kind, 200, 10 + STEPS, 4_990 - STEPS)
    return judged(guard, kind, 500, 5_000, STEPS) / early
