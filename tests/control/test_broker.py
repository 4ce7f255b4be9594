"""The broker of one machine: a message appears whole, is taken once, and leaves nothing behind."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection
from kombu.transport import TRANSPORT_ALIASES

from control.broker import Channel

Open = Callable[[], Channel]


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Open]:
    """`channel()`: one more process's end of the broker."""
    TRANSPORT_ALIASES["pilothouse-files"] = "control.broker:Transport"
    folders = {"data_folder_in": "messages", "data_folder_out": "messages", "processed_folder": "taken"}
    options: dict[str, Any] = {name: str(tmp_path / folder) for name, folder in folders.items()}
    for folder in options.values():
        Path(folder).mkdir(exist_ok=True)
    options |= {"control_folder": str(tmp_path / "control"), "store_processed": True}
    connections: list[Connection] = []

    def open_channel() -> Channel:
        connections.append(Connection("pilothouse-files://localhost//", transport_options=options))
        made: Channel = connections[-1].channel()
        return made

    yield open_channel
    for connection in connections:
        connection.close()


def _all(channel: Channel, queue: str) -> list[Any]:
    found = []
    while True:
        try:
            found.append(channel._get(queue))
        except Empty:
            return found


def test_messages_come_in_the_order_in_which_they_were_put(channel: Open, tmp_path: Path) -> None:
    sender, reader = channel(), channel()
    for number in range(50):
        sender._put("runs", {"n": number})
    assert [message["n"] for message in _all(reader, "runs")] == list(range(50))
    assert list((tmp_path / "messages").iterdir()) == list((tmp_path / "taken").iterdir()) == []


def test_each_message_is_taken_by_one_of_many_readers_also_while_it_is_written(channel: Open) -> None:
    sender, readers = channel(), [channel() for _ in range(4)]
    taken: list[int] = []
    sent = threading.Event()

    def read(own: Channel) -> None:
        while True:
            last = sent.is_set()
            taken.extend(message["n"] for message in _all(own, "runs"))
            if last:
                return

    threads = [threading.Thread(target=read, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    for number in range(500):
        sender._put("runs", {"n": number, "filler": "x" * 2000})
    sent.set()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(500))


def test_queues_whose_names_end_alike_are_kept_apart(channel: Open) -> None:
    one = channel()
    one._put("other-runs", {"n": 1})
    assert _all(one, "runs") == []
    assert _all(one, "other-runs") == [{"n": 1}]
