"""The bus: what is published arrives, nothing ever blocks, and a reader that was cut off is told so."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from django.conf import settings

from control.runs.bus import Bus
from control.runs.bus_redis import RedisBus, client
from control.runs.bus_unix import Frames, UnixBus, UnixBusServer, frame, socket_path

REDIS_URL = os.environ.get("REDIS_URL", "")


async def until(state: Callable[[], bool], within: float = 5.0) -> None:
    async with asyncio.timeout(within):
        while not state():
            await asyncio.sleep(0.005)


class Heard(list[tuple[str, bytes]]):
    def __call__(self, topic: str, message: bytes) -> None:
        self.append((topic, message))


@pytest.fixture(params=["unix", pytest.param("redis", marks=pytest.mark.redis)])
async def bus_and_path(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Bus, Bus]]:
    """A bus as two processes see it: one object publishes, the other subscribes."""
    if request.param == "redis":
        pair: tuple[Bus, Bus] = (RedisBus(REDIS_URL, settings.REDIS_PREFIX), RedisBus(REDIS_URL, settings.REDIS_PREFIX))
        yield pair
        for one in pair:
            one.close()
        return
    path = socket_path(tmp_path / "bus.sock")
    server = UnixBusServer(path)
    await server.start()
    # Two objects whose paths are spelled unlike the server's take the socket, as another process would.
    other = path.parent / "." / path.name
    pair = (UnixBus(Path(f"{other.parent}/../{other.parent.name}/{other.name}")),) * 2
    yield pair
    pair[0].close()
    await server.stop()


async def test_what_is_published_arrives_in_order_on_its_topic_only(bus_and_path: tuple[Bus, Bus]) -> None:
    sender, reader = bus_and_path
    heard, others = Heard(), Heard()
    one = await reader.subscribe(["events", "text"], heard)
    two = await reader.subscribe(["commands"], others)
    for n in range(500):
        sender.publish("events", b"%d" % n)
    sender.publish("commands", b"\x00\xff" * 40_000)
    await until(lambda: len(heard) == 500 and len(others) == 1)
    assert heard == [("events", b"%d" % n) for n in range(500)]
    assert others == [("commands", b"\x00\xff" * 40_000)]
    one.close()
    two.close()


async def test_nothing_is_delivered_after_close(bus_and_path: tuple[Bus, Bus]) -> None:
    sender, reader = bus_and_path
    closed, open_ = Heard(), Heard()
    one = await reader.subscribe(["events"], closed)
    two = await reader.subscribe(["events"], open_)
    one.close()
    sender.publish("events", b"late")
    await until(lambda: bool(open_))
    assert closed == []
    two.close()


async def test_a_reader_that_raises_hears_the_next_message(bus_and_path: tuple[Bus, Bus]) -> None:
    sender, reader = bus_and_path
    heard = Heard()

    def deliver(topic: str, message: bytes) -> None:
        heard(topic, message)
        raise RuntimeError("a faulty reader")

    subscription = await reader.subscribe(["events"], deliver)
    sender.publish("events", b"1")
    sender.publish("events", b"2")
    await until(lambda: len(heard) == 2)
    subscription.close()


async def test_the_serving_process_hears_itself_without_a_socket(tmp_path: Path) -> None:
    server = UnixBusServer(socket_path(tmp_path / "bus.sock"))
    await server.start()
    bus, heard, far = UnixBus(server.path), Heard(), Heard()
    subscription = await bus.subscribe(["events"], heard)
    through_socket = await UnixBus(Path(f"{server.path.parent}/./{server.path.name}/")).subscribe(["events"], far)
    await asyncio.to_thread(bus.publish, "events", b"x")
    await until(lambda: bool(heard))
    assert heard == [("events", b"x")]
    subscription.close()
    through_socket.close()
    await server.stop()


async def test_a_subscriber_that_came_before_the_server_is_told_reconnected(tmp_path: Path) -> None:
    path = socket_path(tmp_path / "bus.sock")
    bus, heard = UnixBus(path), Heard()
    subscription = await bus.subscribe(["events"], heard)
    assert heard == []
    server = UnixBusServer(path)
    await server.start()
    await until(lambda: heard == [("reconnected", b"")])
    bus.publish("events", b"x")
    await until(lambda: heard[-1] == ("events", b"x"))
    subscription.close()
    await server.stop()


async def test_a_restarted_server_is_found_again_by_readers_and_senders(tmp_path: Path) -> None:
    path = socket_path(tmp_path / "bus.sock")
    first = UnixBusServer(path)
    await first.start()
    far = UnixBus(Path(f"{path.parent}/../{path.parent.name}/{path.name}"))
    heard = Heard()
    subscription = await far.subscribe(["events"], heard)
    far.publish("events", b"before")
    await until(lambda: heard == [("events", b"before")])
    await first.stop()
    second = UnixBusServer(path)
    await second.start()
    await until(lambda: ("reconnected", b"") in heard)
    far.publish("events", b"after")
    await until(lambda: heard[-1] == ("events", b"after"))
    subscription.close()
    await second.stop()


async def test_a_second_server_waits_and_takes_over_when_the_first_is_gone(tmp_path: Path) -> None:
    path = socket_path(tmp_path / "bus.sock")
    first, second = UnixBusServer(path), UnixBusServer(path)
    second.RETRY_S = 0.01
    await first.start()
    starting = asyncio.create_task(second.start())
    await asyncio.sleep(0.05)
    assert not starting.done()
    await first.stop()
    await starting
    await second.stop()


@pytest.mark.redis
async def test_a_reader_whose_redis_connection_is_cut_is_told_reconnected() -> None:
    bus, heard = RedisBus(REDIS_URL, settings.REDIS_PREFIX), Heard()
    subscription = await bus.subscribe(["events"], heard)
    with client(REDIS_URL) as admin:
        mine = [row["id"] for row in admin.client_list() if row["name"] == f"pilothouse-bus-{os.getpid()}"]
        for number in mine:
            admin.client_kill_filter(_id=number)
    await until(lambda: ("reconnected", b"") in heard)
    bus.publish("events", b"after")
    await until(lambda: heard[-1] == ("events", b"after"))
    subscription.close()
    bus.close()


async def test_a_reader_that_takes_nothing_is_cut_off_and_delays_nobody(tmp_path: Path) -> None:
    path = socket_path(tmp_path / "bus.sock")
    server = UnixBusServer(path)
    await server.start()
    deaf = socket.socket(socket.AF_UNIX)
    deaf.connect(str(path))
    deaf.sendall(frame("", b"events"))
    await until(lambda: any(peer.topics for peer in server.peers))
    heard = 0

    def count(topic: str, message: bytes) -> None:
        nonlocal heard
        heard += 1

    local = await UnixBus(path).subscribe(["events"], count)
    for _ in range(40):
        server.fan_out("events", b"x" * 512 * 1024)
    assert heard == 40
    await until(lambda: not server.peers)
    local.close()
    deaf.close()
    await server.stop()


@pytest.mark.parametrize("make", [lambda path: UnixBus(path), lambda path: RedisBus("redis://127.0.0.1:1/0", "test")])
def test_publish_neither_blocks_nor_raises_while_nobody_is_there(make: Callable[[Path], Bus], tmp_path: Path) -> None:
    bus = make(tmp_path / "nobody.sock")
    started = time.perf_counter()
    for _ in range(30_000):
        bus.publish("events", b"x" * 2000)
    assert time.perf_counter() - started < 3
    bus.close(0.1)


def test_close_waits_until_what_was_published_is_sent(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(socket_path(tmp_path / "bus.sock")))
    listener.listen()
    bus = UnixBus(socket_path(tmp_path / "bus.sock"))
    bus.publish("commands", b"stop")
    bus.close()
    connection, _ = listener.accept()
    assert connection.recv(100) == frame("commands", b"stop")
    connection.close()
    listener.close()


def test_frames_come_out_the_same_in_any_cut() -> None:
    data = frame("events", b"one") + frame("", b"a,b") + frame("text", b"")
    wanted = [("events", b"one"), ("", b"a,b"), ("text", b"")]
    for size in range(1, len(data) + 1):
        frames = Frames()
        got = [item for at in range(0, len(data), size) for item in frames.feed(data[at : at + size])]
        assert [(topic, message) for topic, message, _ in got] == wanted
        assert b"".join(whole for _, _, whole in got) == data


def test_garbage_is_refused() -> None:
    with pytest.raises(ValueError, match="not a frame"):
        Frames().feed(b"GET / HTTP/1.1\r\n\r\n")


def test_a_long_directory_gets_a_short_private_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120) / "bus.sock"
    short = socket_path(deep)
    assert len(str(short)) <= 100
    assert short.parent.stat().st_mode & 0o077 == 0
    assert socket_path(deep) == short
