"""The rules about the fleet as a whole: the error rate of a provider, and a spend that climbs. Pure, over points of
five minutes each."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

SLOT_S = 300
# A day of slots is what the spend is compared with.
SLOTS = 288
# Of so many attempts in ten minutes such a share must fail; and below the calm share it is over.
LEAST_ATTEMPTS = 10
BAD_SHARE = 0.5
CALM_SHARE = 0.25
# So many times the average of the day before, and at least so much an hour.
STEEP = 4.0
CALM_STEEP = 2.0
LEAST_PER_HOUR = 5.0

# [slot, first, second]: failures and attempts of a provider; dollars and calls of the fleet.
Point = tuple[int, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`bad`: the condition holds; `calm`: it is surely over; between the two nothing changes."""

    bad: bool
    calm: bool
    title: str
    facts: tuple[tuple[str, str], ...]


def slot_of(moment: datetime) -> int:
    return int(moment.timestamp()) // SLOT_S


def added(points: Sequence[Point], more: Sequence[Point]) -> list[Point]:
    """The points with more of them, by slot, those of a day."""
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for slot, first, second in (*points, *more):
        sums[slot][0] += first
        sums[slot][1] += second
    newest = max(sums, default=0)
    return [(slot, pair[0], pair[1]) for slot, pair in sorted(sums.items()) if slot > newest - SLOTS]


def _recent(points: Sequence[Point], now: datetime) -> tuple[float, float, float]:
    """Both sums of the present slot and the one before, and the seconds that they span."""
    here = slot_of(now)
    last = [point for point in points if here - 1 <= point[0] <= here]
    seconds = SLOT_S + now.timestamp() % SLOT_S
    return sum(point[1] for point in last), sum(point[2] for point in last), seconds


def errors(provider: str, points: Sequence[Point], now: datetime) -> Reading:
    failed, attempts, _ = _recent(points, now)
    share = failed / attempts if attempts else 0.0
    return Reading(
        bad=attempts >= LEAST_ATTEMPTS and share >= BAD_SHARE,
        calm=attempts < LEAST_ATTEMPTS / 2 or share <= CALM_SHARE,
        title=f"{provider}: {failed:.0f} of {attempts:.0f} attempts failed within ten minutes",
        facts=(("provider", provider), ("failed", f"{failed:.0f}"), ("attempts", f"{attempts:.0f}")),
    )


def spend(points: Sequence[Point], now: datetime) -> Reading:
    """The rate of the last five to ten minutes against the average of the day before, idle times included."""
    dollars, _, seconds = _recent(points, now)
    here = slot_of(now)
    before = [point for point in points if here - SLOTS <= point[0] < here - 1]
    span = (here - 1 - min((point[0] for point in before), default=here - 1)) * SLOT_S
    rate = dollars / seconds * 3600
    usual = sum(point[1] for point in before) / span * 3600 if span else 0.0
    # Without a day to compare with, an hour of it is enough; with less than that nothing can be said.
    known = span >= 3600
    return Reading(
        bad=known and rate >= LEAST_PER_HOUR and rate >= STEEP * usual,
        calm=rate < LEAST_PER_HOUR or rate < CALM_STEEP * usual,
        title=f"The fleet spends ${rate:,.2f} an hour; ${usual:,.2f} is usual",
        facts=(("an hour", f"${rate:,.2f}"), ("usual", f"${usual:,.2f}"), ("last ten minutes", f"${dollars:,.4f}")),
    )
