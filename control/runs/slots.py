"""The room of one worker: how many runs it may hold at once. Runs that wait for a person take none of it."""

import threading
from collections.abc import Callable


class Slots:
    """Taken from any thread; given back on the worker's loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._room = threading.Condition()  # guards _taken between the loop and the threads that offer runs
        self._closed = False

    def take(self, may: Callable[[], bool], within_s: float = 0.0) -> bool:
        """One slot, if there is one within that time while `may` holds; False at once when closed."""
        with self._room:
            free = self._room.wait_for(lambda: self._closed or self._free(may), within_s)
            if self._closed or not free:
                return False
            self._taken += 1
            return True

    def _free(self, may: Callable[[], bool]) -> bool:
        return self._taken < self._most and may()

    def back(self) -> None:
        """A run that rested works again: it has its slot in any case, and the next one to end leaves none."""
        with self._room:
            self._taken += 1

    def give(self) -> None:
        with self._room:
            self._taken -= 1
            self._room.notify()

    def over(self) -> bool:
        """Whether more runs work here than should, because some that rested came back."""
        return self._taken > self._most

    def close(self) -> None:
        """No more are given out."""
        with self._room:
            self._closed = True
            self._room.notify_all()
