"""Where things stand in the pictures of a postmortem, in per cent of the width: sharp and readable at any size.

Pictures are SVG made here, without a chart library: they work without scripts, in a file and under any policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from control.incidents.postmortem.report import Lane, Mark, Report, TurnCost
from control.incidents.postmortem.words import count, money

# Marks that would lie closer than this share of the width become one.
_COLUMNS = 360
_LEAST = 0.22
_BARS = 120
HEIGHT = 100.0
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
# So many ticks fit under the narrowest picture.
_TICKS = 4
_STATES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The part of the run that a picture shows."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return max((self.end - self.start).total_seconds(), 0.001)

    def share(self, at: datetime) -> float:
        return (at - self.start).total_seconds() / self.seconds * 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A mark, or several that lie too close to be told apart. `x`, `width` in per cent."""

    x: str
    width: str
    look: str
    letter: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    kind: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    x: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """`milestone`: where the last real progress was, None if outside. `cost`: points of the line of money spent."""

    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    milestone: str | None
    cost: str
    cost_top: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: str
    width: str
    y: str
    height: str
    text: str
    wasted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    bars: tuple[Bar, ...]
    top: str
    caption: str


def whole(report: Report) -> Window:
    about = report.about
    begun = about.started_at or about.queued_at
    return Window(start=begun, end=max(about.finished_at, begun + timedelta(milliseconds=1)))


def window_of(report: Report, start_ms: int | None, end_ms: int | None) -> Window:
    """From and to in milliseconds since the run began, brought into it; the whole run for what is no window."""
    all_of_it = whole(report)
    if start_ms is None or end_ms is None:
        return all_of_it
    long = int(all_of_it.seconds * 1000)
    start, end = max(0, min(start_ms, long)), max(0, min(end_ms, long))
    if end - start < 1:
        return all_of_it
    at = all_of_it.start
    return Window(start=at + timedelta(milliseconds=start), end=at + timedelta(milliseconds=end))


def picture(report: Report, window: Window) -> Picture:
    milestone = report.milestone
    seen = milestone is not None and window.start <= milestone.at <= window.end
    points, top = _cost(report, window)
    return Picture(
        rows=tuple(Row(name=lane.name, kind=_kind(lane), shapes=tuple(_shapes(lane, window))) for lane in report.lanes),
        ticks=tuple(_ticks(window)),
        milestone=_percent(window.share(milestone.at)) if milestone is not None and seen else None,
        cost=points,
        cost_top=top,
    )


def _kind(lane: Lane) -> str:
    """How its marks are drawn: bars, boxes with a letter, or signs."""
    return {"edits": "boxes", "verdicts": "signs", "people": "signs"}.get(lane.name, "bars")


def _shapes(lane: Lane, window: Window) -> list[Shape]:
    inside = [mark for mark in lane.marks if mark.end >= window.start and mark.start <= window.end]

    def place(mark: Mark) -> tuple[int, str, str]:
        return int(window.share(mark.start) / 100 * _COLUMNS), mark.look, mark.letter

    found = []
    for _, same in groupby(inside, key=place):
        group = list(same)
        left = max(0.0, window.share(group[0].start))
        right = min(100.0, window.share(max(mark.end for mark in group)))
        more = f" (and {len(group) - 1} more here)" if len(group) > 1 else ""
        found.append(
            Shape(
                x=_percent(min(left, 100 - _LEAST)),
                width=_percent(max(right - left, _LEAST)),
                look=_look(group[0]),
                letter=group[0].letter,
                seq=group[0].seq,
                text=f"{group[0].start:%H:%M:%S} · {group[0].text}{more}",
            )
        )
    return found


def _look(mark: Mark) -> str:
    """An edit is coloured by the content that its file took."""
    return f"{mark.look} st-{(ord(mark.letter[0]) - 65) % _STATES}" if mark.letter else mark.look


def _ticks(window: Window) -> list[Tick]:
    step = next((one for one in _STEPS if window.seconds / one <= _TICKS), 86_400 * 7)
    form = "%H:%M:%S" if step < 60 else "%H:%M" if window.seconds < 86_400 * 2 else "%d %H:%M"
    first = window.start.replace(microsecond=0)
    first += timedelta(seconds=-(int(first.timestamp()) % step) % step)
    found = []
    at = first if first >= window.start else first + timedelta(seconds=step)
    while at <= window.end:
        found.append(Tick(x=_percent(window.share(at)), word=f"{at:{form}}"))
        at += timedelta(seconds=step)
    return found


def _cost(report: Report, window: Window) -> tuple[str, str]:
    """Money spent so far as a line from bottom to top, and what the top stands for."""
    top = report.turns[-1].total_usd if report.turns else None
    if not top:
        return "", ""
    points = [(0.0, HEIGHT)]
    before = 0.0
    for one in report.turns:
        x = window.share(one.at)
        y = HEIGHT - float(one.total_usd / top) * (HEIGHT - 6)
        if x < 0:
            before = HEIGHT - y
            points = [(0.0, HEIGHT - before)]
        elif x <= 100:
            points.append((x, y))
    points.append((100.0, points[-1][1]))
    return " ".join(f"{x * 10:.1f},{y:.1f}" for x, y in _thinned(points)), money(top)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    step = max(1, len(points) // 400)
    return [*points[:-1:step], points[-1]]


def tokens(report: Report) -> Bars | None:
    """Input tokens per turn: the history that is sent again grows with every turn."""
    rows = [one for one in report.turns if one.tokens_in]
    if len(rows) < 2:
        return None
    size = -(-len(rows) // _BARS)
    groups = [rows[at : at + size] for at in range(0, len(rows), size)]
    most = max(one.tokens_in for one in rows)
    wide = 100 / len(groups)
    last = report.milestone.turn if report.milestone is not None else None
    bars = [
        _bar(group, number * wide, wide, most, wasted=last is not None and group[0].turn > last)
        for number, group in enumerate(groups)
    ]
    first, final = rows[0], rows[-1]
    times = f" · a turn costs {final.usd / first.usd:.1f}× the first" if first.usd else ""
    caption = f"{first.tokens_in:,} → {final.tokens_in:,} tokens{times}"
    return Bars(bars=tuple(bars), top=f"{most:,}", caption=caption)


def _bar(group: Sequence[TurnCost], left: float, wide: float, most: int, *, wasted: bool) -> Bar:
    tallest = max(group, key=lambda one: one.tokens_in)
    high = max(1.0, tallest.tokens_in / most * HEIGHT)
    turns = f"turn {group[0].turn}" if len(group) == 1 else f"turns {group[0].turn} to {group[-1].turn}"
    text = f"{turns}: {count(tallest.tokens_in, 'input token')}, {money(tallest.usd)}"
    return Bar(
        x=_percent(left + wide * 0.1),
        width=_percent(wide * 0.8),
        y=f"{HEIGHT - high:.1f}",
        height=f"{high:.1f}",
        text=text,
        wasted=wasted,
    )


def _percent(value: float) -> str:
    return f"{value:.2f}%"
