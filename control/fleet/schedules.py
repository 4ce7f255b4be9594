"""When schedules are due: cron expressions read in a time zone, and which of the times gone by are made up for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

# A time that is taken up within this is on time: a desk looks every few seconds.
LATE = timedelta(seconds=90)
# However long no desk was there: so many times are made up for at most, and so many are looked at.
MOST_MADE_UP = 10
MOST_LOOKED_AT = 2_000


class BadSchedule(Exception):
    """`field` is what is wrong; the text says what to write."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Times to start a run for, the oldest first; how many others are passed over, and the last of these."""

    starts: Sequence[datetime]
    missed: int = 0
    last_missed: datetime | None = None


def zone_of(name: str) -> ZoneInfo:
    """Raises BadSchedule."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        what = f"There is no time zone {name!r:.60}. Write it like Europe/Berlin or UTC."
        raise BadSchedule("zone", what) from error


def check(cron: str, zone: str) -> None:
    """Raises BadSchedule for what never is, and for what can be read in no zone."""
    if len(cron.split()) != 5:
        what = f"A time has five fields, minute hour day month weekday, such as 30 1 * * 1-5, not {cron!r:.100}."
        raise BadSchedule("cron", what)
    if next_after(cron, zone, datetime.now(UTC)) is None:
        raise BadSchedule("cron", f"{cron!r:.100} is no day that ever comes.")


def next_after(cron: str, zone: str, moment: datetime) -> datetime | None:
    """The first time after a moment, in UTC; None if none ever comes. Raises BadSchedule."""
    found = coming(cron, zone, moment, 1)
    return found[0] if found else None


def coming(cron: str, zone: str, moment: datetime, count: int) -> list[datetime]:
    """The next times. Around a change of the clock they fall as those of Debian's cron: one that the clock jumps over
    comes right after the jump, one that it shows twice comes once."""
    try:
        times = CronSim(cron, moment.astimezone(zone_of(zone)))
    except CronSimError as error:
        raise BadSchedule("cron", f"{cron!r:.100} cannot be read: {error}.") from error
    found: list[datetime] = []
    for at in times:
        found.append(at.astimezone(UTC))
        if len(found) == count:
            break
    return found


def in_words(cron: str) -> str:
    """The expression as people say it; the expression itself where nobody says it so."""
    try:
        return str(CronSim(cron, datetime.now(UTC)).explain())
    except CronSimError:
        return cron


def due(cron: str, zone: str, first: datetime, now: datetime, missed: str) -> Due:
    """What to start now, `first` being the oldest time that nobody has taken up.

    `missed` tells what becomes of those that came while nobody looked: `skip` them, make up for them `once`, or for
    `all` of them.
    """
    times: list[datetime] = []
    at = first
    while at <= now and len(times) < MOST_LOOKED_AT:
        times.append(at)
        following = next_after(cron, zone, at)
        if following is None:
            break
        at = following
    late = [one for one in times if now - one > LATE]
    fresh = times[len(late) :]
    if missed == "all":
        starts = times[-MOST_MADE_UP:]
    elif missed == "once" and late and not fresh:
        starts = late[-1:]
    else:
        starts = fresh
    passed = [one for one in times if one not in starts]
    return Due(starts=starts, missed=len(passed), last_missed=passed[-1] if passed else None)
