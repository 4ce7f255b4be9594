"""The chore that sends traces: follows the logs, folds them to spans and hands these to a collector.

It costs the hot path nothing, and a collector that is away delays spans but loses none: the cursors stay where they
are.
Off unless OTEL_EXPORTER_OTLP_ENDPOINT (or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) is set.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from django.conf import settings
from django.db import transaction

from control.runs import following
from control.runs.chores import chore, do_soon
from control.runs.following import Behind
from control.runs.traces.spans import RunSpans, Span

logger = logging.getLogger(__name__)

READER = "traces"
RUNS_AT_ONCE = 50
SPANS_AT_ONCE = 500
KEPT = 500
FIRST_REST_S = 2.0
LONGEST_REST_S = 60.0
# So many refusals and nothing taken: then it is not the spans.
TRIES = 3

Send = Callable[[Sequence[Span]], bool]


class Sender:
    """`send` takes spans and says whether they have arrived."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._kept: OrderedDict[str, RunSpans] = OrderedDict()
        self._rest_s = FIRST_REST_S
        self._not_before = 0.0

    def turn(self) -> int:
        """Send what is new; how many runs are further than before. After a failure it rests, longer each time."""
        if time.monotonic() < self._not_before:
            return 0
        runs = following.behind(READER, RUNS_AT_ONCE)
        if not runs:
            return 0
        folded = list(self._fold(runs))
        if not self._send_all([span for _, spans in folded for span in spans]):
            # Either the collector is away, or it refuses one of them; that one must not hold up the others for ever.
            refused = self._send_apart(folded)
            if refused is None:
                self._rest(runs)
                return 0
            logger.warning("the collector refuses spans of runs %s; going on without them", ", ".join(refused))
        self._rest_s = FIRST_REST_S
        self._move(runs)
        return len(runs)

    def _fold(self, runs: Sequence[Behind]) -> Iterator[tuple[Behind, list[Span]]]:
        for one, fold, events in following.read([(one, self._remembered(one)) for one in runs]):
            made: list[Span] = []
            for event in events:
                ended = fold.take(event)
                if event.seq > one.seen:
                    made += ended
            if not one.ended:
                self._kept[one.run] = fold
            yield one, made
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _remembered(self, one: Behind) -> RunSpans:
        fold = self._kept.pop(one.run, None)
        if fold is not None and fold.seq == one.seen:
            return fold
        return RunSpans(run=one.run, root=one.root, parent=one.parent, parent_call=one.parent_call, agent=one.agent)

    def _send_all(self, spans: Sequence[Span]) -> bool:
        parts = (spans[start : start + SPANS_AT_ONCE] for start in range(0, len(spans), SPANS_AT_ONCE))
        return all(self._send(part) for part in parts)

    def _send_apart(self, folded: Sequence[tuple[Behind, list[Span]]]) -> list[str] | None:
        """Run by run: those that were refused; None if the collector seems to be away."""
        refused: list[str] = []
        arrived = 0
        for one, spans in folded:
            if spans and not self._send_all(spans):
                refused.append(one.run)
                if not arrived and len(refused) >= TRIES:
                    return None
            elif spans:
                arrived += 1
        return refused if arrived else None

    def _rest(self, runs: Sequence[Behind]) -> None:
        """What was folded has not arrived: fold it anew the next time."""
        for one in runs:
            self._kept.pop(one.run, None)
        logger.warning("the collector takes no spans; trying again in %g s", self._rest_s)
        self._not_before = time.monotonic() + self._rest_s
        self._rest_s = min(self._rest_s * 2, LONGEST_REST_S)

    def _move(self, runs: Sequence[Behind]) -> None:
        with transaction.atomic():
            if following.advance(READER, [(one, one.last_seq) for one in runs]):
                return
            transaction.set_rollback(True)
        # Another desk sends too; the spans have the same ids, so nothing is doubled where they are kept.
        self._kept.clear()


_sender: Sender | None = None


def send() -> None:
    """One turn of this process's sender."""
    global _sender
    if _sender is None:
        from control.runs.traces.otlp import Exporter  # the SDK is loaded only where traces are on

        _sender = Sender(Exporter().send)
    if _sender.turn() == RUNS_AT_ONCE:
        do_soon("traces")


if settings.TRACES_ON:
    chore("traces", every_s=1.0, apart=True)(send)
