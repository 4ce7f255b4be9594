"""The documents of runs that are being looked at: one per run and process, shared by pages and live frames."""

import gc
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from control.dashboard.folds import RunFold
from control.runs import log

KEPT = 32
READ = 2_000

# Guards `_kept` only, for the moment of a look-up; each document has a lock of its own for the work.
_guard = threading.Lock()
_kept: OrderedDict[str, "Kept"] = OrderedDict()


class Kept:
    """A fold and the lock that lets one thread at a time extend or render it."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.fold = RunFold()
        self.lock = threading.RLock()

    def extend(self, hinted: Sequence[bytes] = (), first: int = 0) -> int:
        """Fold in what is new; returns the last `seq`. Hinted lines that fit on spare the query. Call with the lock."""
        fold = self.fold
        if hinted and first <= fold.seq + 1:
            fold.feed(hinted)
            return fold.seq
        while True:
            lines = log.read_after(self.run, fold.seq, READ)
            with _without_collector(len(lines) == READ):
                fold.feed(lines)
            if len(lines) < READ:
                return fold.seq


@contextmanager
def _without_collector(long: bool) -> Iterator[None]:
    """A long log makes many objects that stay; looking for garbage among them again and again doubles the time."""
    long = long and gc.isenabled()
    if long:
        gc.disable()
    try:
        yield
    finally:
        if long:
            gc.enable()


@contextmanager
def opened(run: str) -> Iterator[Kept]:
    """The run's document for this thread alone. It may be behind the log until `extend` is called."""
    with _guard:
        kept = _kept.get(run)
        if kept is None:
            kept = _kept[run] = Kept(run)
        _kept.move_to_end(run)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    with kept.lock:
        yield kept


def forget() -> None:
    """Drop everything; for tests, whose databases come and go."""
    with _guard:
        _kept.clear()
