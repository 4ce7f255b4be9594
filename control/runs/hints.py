"""Hints on the bus after commit. They carry nothing that the database does not hold: a lost one costs milliseconds."""

from collections.abc import Sequence

from django.db import transaction

# Above this a hint names only the range; readers fetch the events themselves.
LARGEST = 64 * 1024
NAMED_AT_ONCE = 200


def events_message(root: str, epoch: int, run: str, first: int, last: int, bodies: Sequence[bytes]) -> bytes:
    """The message on topic `events` for a range of one run's log; the envelopes are joined, not serialised again."""
    head = f'{{"run":"{run}","root":"{root}","epoch":{epoch},"first":{first},"last":{last}'.encode()
    if sum(map(len, bodies)) > LARGEST:
        return head + b"}"
    return b'%b,"events":[%b]}' % (head, b",".join(bodies))


def announce_later(root: str, epoch: int, run: str, first: int, last: int, bodies: Sequence[bytes]) -> None:
    """Publish a range of a log once the transaction has committed."""
    message = events_message(root, epoch, run, first, last, bodies)
    transaction.on_commit(lambda: _publish("events", message))


def command_later(run: str) -> None:
    """Wake whoever holds the run or one of its descendants."""
    message = f'{{"run":"{run}"}}'.encode()
    transaction.on_commit(lambda: _publish("commands", message))


def commands_later(runs: Sequence[str]) -> None:
    """The same for many runs, in few messages: each worker reads its commands once for each."""
    for start in range(0, len(runs), NAMED_AT_ONCE):
        part = runs[start : start + NAMED_AT_ONCE]
        names = ",".join(f'"{run}"' for run in part)
        message = f'{{"run":"{part[0]}","runs":[{names}]}}'.encode()
        transaction.on_commit(lambda message=message: _publish("commands", message))  # type: ignore[misc]


def _publish(topic: str, message: bytes) -> None:
    # Imported late: tests and commands that never publish need no bus.
    from control.runs import bus

    bus.bus().publish(topic, message)
