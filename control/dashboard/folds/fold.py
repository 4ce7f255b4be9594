"""One run's events folded into its document: the middle column with its turns, and the outline beside it."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from agents.events import Event, decode
from control.dashboard.document import Document, Node

logger = logging.getLogger(__name__)

TURNS = "turns"
OUTLINE = "outline"
MARKS = "marks"
CHART = "chart"
# A chart of more bars than this says nothing more.
BARS = 90


@dataclass(slots=True)
class Turn:
    """What the outline and the head of a turn's card need to know."""

    number: int
    calls: list[str] = field(default_factory=list)
    cost: Decimal | None = None
    cost_unknown: bool = False
    verdicts: int = 0
    errors: int = 0


class RunFold:
    """The document of one run and what it takes to fold the next event into it. Pure: no clock, no I/O."""

    def __init__(self) -> None:
        self.document = Document(TURNS, OUTLINE, MARKS, CHART)
        self.seq = 0
        self.turn = 0
        self.turns: dict[int, Turn] = {}
        self.open: dict[str, None] = {}
        self.batches: dict[int, list[list[str]]] = {}
        self.asked: dict[str, dict[str, Any]] = {}
        # Which element tells of an event that is told in a call's row: evidence links lead there.
        self.rows: dict[int, str] = {}
        # Verdicts on calls that have no row yet: each waits for its row, so that it stands below it.
        self.early: dict[str, list[tuple[Event, dict[str, Any]]]] = {}
        self.ended = False
        # Summaries that lag behind their turns until the end of `feed`: one making each, however many events came.
        self._outlines: dict[int, None] = {}
        self._marks = self._chart = False

    def feed(self, raw: Iterable[bytes | str]) -> None:
        """Fold the next events in. One that was folded already is skipped, so overlap does no harm."""
        for line in raw:
            event = decode(line)
            if event.seq > self.seq:
                self._apply(event)
        self._summarise()

    def _apply(self, event: Event) -> None:
        if event.turn is not None and event.turn > self.turn:
            self.turn = event.turn
        if self.early and event.kind.startswith(("run.", "turn.")):
            # What has no row by now gets none: its verdict stands in the turn itself.
            for call in list(self.early):
                self.tell_early(call, event)
        handler = HANDLERS.get(event.kind)
        known = type(event.data).kind == event.kind
        try:
            (handler if handler and known else raw)(self, event)
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
            # A field of a form that nobody foresaw costs this one event its shape, never the page.
            logger.exception("event %s of run %s is shown raw", event.seq, event.run)
            raw(self, event)
        self.seq = event.seq

    # --- what handlers share --------------------------------------------------------------------------------------

    def card(self, number: int, event: Event) -> Turn:
        """The turn's card, made when the first event speaks of the turn."""
        turn = self.turns.get(number)
        if turn is None:
            turn = self.turns[number] = Turn(number=number)
            put = self.document.put
            body, head = f"turn-{number}-body", f"turn-{number}-head-slot"
            put(f"turn-{number}", TURNS, "turn_started", event.seq, slots=(head, body), number=number)
            put(f"turn-{number}-head", head, "turn_head", event.seq, number=number, at=event.at, state="open")
            put(f"outline-{number}", OUTLINE, "outline_turn", event.seq, place="prepend", number=number, squares=[])
        return turn

    def body(self, event: Event) -> str:
        """The container in which an event shows: its turn's card, else the current one's, else the column itself."""
        number = event.turn or self.turn
        if number:
            self.card(number, event)
            return f"turn-{number}-body"
        return TURNS

    def after(self, event: Event, call: str | None = None) -> str:
        """The container under a call's row, if that row exists; else the turn's body."""
        slot = f"after-{call or event.call}"
        return slot if self.document.holds(slot) else self.body(event)

    def fact(self, event: Event, parent: str | None = None, *, seq: int | None = None, **context: Any) -> Node:
        """A part of its own for this event, from the template named after its kind; `seq`: it comes later than that."""
        part = event.kind.replace(".", "_")
        where = parent or self.body(event)
        id = f"event-{event.seq}"
        return self.document.put(id, where, part, seq or event.seq, at=event.at, data=event.data, **context)

    def tell_early(self, call: str, event: Event) -> None:
        """Show what waited for a call's row, as a change that `event` brings: viewers have seen what lies between."""
        for early, context in self.early.pop(call, ()):
            self.fact(early, self.after(early), seq=event.seq, **context)

    def outline(self, number: int) -> None:
        """The outline's row of this turn is out of date."""
        if number in self.turns:
            self._outlines[number] = None

    def mark(self) -> None:
        """There is a new error or verdict to look at first."""
        self._marks = True

    def chart(self) -> None:
        """A turn has cost something."""
        self._chart = True

    def _summarise(self) -> None:
        for number in self._outlines:
            self._outline_turn(self.turns[number])
        if self._marks:
            wrong = next((turn.number for turn in self.turns.values() if turn.errors), None)
            judged = [turn.number for turn in self.turns.values() if turn.verdicts]
            self.document.put("outline-marks", MARKS, "outline_marks", self.seq, error=wrong, verdicts=judged[-12:])
        if self._chart:
            self._cost_chart()
        self._outlines.clear()
        self._marks = self._chart = False

    def _outline_turn(self, turn: Turn) -> None:
        calls = [self.document.nodes[f"call-{call}"].context for call in turn.calls]
        self.document.change(
            f"outline-{turn.number}",
            self.seq,
            squares=[(call["state"], call["name"]) for call in calls],
            cost=turn.cost,
            cost_unknown=turn.cost_unknown,
            verdicts=turn.verdicts,
            errors=turn.errors,
        )

    def _cost_chart(self) -> None:
        """Cost per turn as bars, the newest ones if there are many."""
        costs = [(turn.number, turn.cost or Decimal(0)) for turn in list(self.turns.values())[-BARS:]]
        top = max(cost for _, cost in costs)
        if top > 0:
            bars = [(number, cost, round(float(cost / top) * 100, 1)) for number, cost in costs]
            width = max(len(bars), 24)
            self.document.put("cost-chart", CHART, "cost_chart", self.seq, bars=bars, width=width, top=top)


Handler = Callable[[RunFold, Event], None]
HANDLERS: dict[str, Handler] = {}


def on(*kinds: str) -> Callable[[Handler], Handler]:
    """Register a handler for these kinds."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            HANDLERS[kind] = handler
        return handler

    return register


def raw(fold: RunFold, event: Event) -> None:
    """A kind or form that this version does not know: kept and shown as it is."""
    fold.document.put(
        f"event-{event.seq}", fold.body(event), "unknown", event.seq, at=event.at, kind=event.kind, data=event.data,
    )  # fmt: skip
