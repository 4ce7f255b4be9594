"""The small deciders behind the sockets: the ring, the window, the hint, the origin, and plain text."""

import asyncio
from typing import Any

import pytest

from control import plain
from control.dashboard.consumers import Socket
from control.dashboard.gate import parse_origin
from control.dashboard.ring import Chunk, Ring
from control.dashboard.templatetags.pilothouse import duration, money, short, stop_seconds
from control.dashboard.wake import names
from control.dashboard.window import MOST_BYTES, Window

RUN, ROOT = "01a22a71-b5c3-73ef-b0c6-7c35f60a3ae4", "01a22a71-b620-7626-87ea-6be03cd19787"


def ring(*spans: tuple[int, int]) -> Ring:
    made = Ring()
    for after, last in spans:
        made.add(Chunk(after, last, b"%d" % last))
    return made


def test_a_ring_joins_all_that_follows_a_cursor():
    assert ring((0, 2), (2, 3), (3, 7)).take(2, 100, 100) == Chunk(2, 7, b"3,7")


def test_a_ring_says_nothing_where_it_does_not_reach_back():
    assert ring((5, 6)).take(2, 100, 100) is None
    assert ring((0, 4)).take(2, 100, 100) is None
    assert ring((0, 4)).take(4, 100, 100) is None


def test_patches_may_overlap_and_events_may_not():
    assert ring((0, 4)).take(2, 100, 100, overlap=True) == Chunk(2, 4, b"4")


def test_a_ring_with_no_room_says_so_unless_it_is_forced():
    assert ring((0, 4)).take(0, 3, 100) == Chunk(0, 0, b"")
    assert ring((0, 4), (4, 5)).take(0, 3, 100, force=True) == Chunk(0, 4, b"4")


def test_a_ring_is_bounded_by_events_and_bytes():
    made = Ring()
    for seq in range(0, 4_000, 100):
        made.add(Chunk(seq, seq + 100, b"x"))
    assert made.take(2_900, 2_000, 2_000) is None and made.take(3_000, 2_000, 2_000) is not None
    made.add(Chunk(4_000, 4_001, b"x" * MOST_BYTES))
    assert made.take(3_000, 2_000, 2_000) is None


def test_a_window_counts_what_is_in_flight():
    window = Window(10)
    window.sent_events(500, 1_000)
    window.sent_events(700, 2_000)
    assert (window.events_left, window.bytes_left, window.idle) == (310, MOST_BYTES - 3_000, False)
    assert window.ack(500) and window.bytes_left == MOST_BYTES - 2_000
    assert not window.ack(9_999)
    assert window.ack(700) and window.idle


def test_live_text_is_bounded_until_somebody_acknowledges():
    window = Window(0)
    assert window.text_fits(1_000_000) and not window.text_fits(100_000)
    window.ack(0)
    assert window.text_fits(100_000)


def test_an_acknowledgement_goes_to_no_thread(monkeypatch: pytest.MonkeyPatch):
    acknowledged: list[int] = []

    class Open(Socket):
        async def connect(self) -> None: ...

        def acknowledged(self, seq: int) -> None:
            acknowledged.append(seq)

    async def refuse() -> None:
        raise AssertionError("a hop to a thread for each message")

    monkeypatch.setattr("channels.consumer.aclose_old_connections", refuse)
    said = iter(
        [
            {"type": "websocket.connect"},
            {"type": "websocket.receive", "text": '{"type":"ack","seq":7}'},
            {"type": "websocket.disconnect", "code": 1000},
        ]
    )

    async def receive() -> dict[str, Any]:
        return next(said)

    async def send(message: dict[str, Any]) -> None: ...

    asyncio.run(Open()({"type": "websocket"}, receive, send))
    assert acknowledged == [7]


def test_a_hint_names_its_run_without_being_parsed():
    assert names(b'{"run":"%b","root":"%b","epoch":1' % (RUN.encode(), ROOT.encode())) == (RUN, ROOT)
    assert names(b'{"run":"%b"}' % RUN.encode()) == (RUN, "")
    assert names(b'{"epoch": 1, "run": "x", "root": "y"}') == ("x", "y")
    with pytest.raises(ValueError):
        names(b'{"no":"run"}')


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://127.0.0.1:8000", ("http", "127.0.0.1", 8000)),
        ("https://console.example", ("https", "console.example", 443)),
        ("http://[::1]:8000", ("http", "::1", 8000)),
        ("null", None),
        ("http://a:b@host", None),
        ("http://host/path", None),
        ("ftp://host", None),
        ("http://host:99999", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(text: str, origin: tuple[str, str, int] | None):
    assert parse_origin(text) == origin


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07x", "red ⟨OSC 0;title⟩x"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("nul\x00", "nul⟨U+0000⟩"),
        ("\U000e0041tag", "⟨U+E0041⟩tag"),
        ("👩\u200d🔧", "👩\u200d🔧"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("ünïcödé 漢字", "ünïcödé 漢字"),
    ],
)
def test_hidden_characters_are_shown(text: str, shown: str):
    assert plain.visible(text) == shown


def test_numbers_are_written_to_be_read_at_a_glance():
    assert [short(n) for n in (0, 999, 1_000, 71_234, 182_000, 1_400_000, None)] == [
        "0", "999", "1.0 k", "71.2 k", "182 k", "1.4 M", "–",
    ]  # fmt: skip
    assert [money(n) for n in ("0", "1.84", "0.49", "0.0012", "0.000001", None)] == [
        "$0.00", "$1.84", "$0.490", "$0.0012", "<$0.0001", "unknown",
    ]  # fmt: skip
    assert [duration(n) for n in (0.031, 4.1, 372, 4_440)] == ["31 ms", "4.1 s", "6:12", "1 h 14 m"]
    assert [stop_seconds(n) for n in (0.004, 0.18)] == ["4 ms", "0.18 s"]


def test_a_preview_tells_when_something_is_left_out():
    assert plain.preview("a\nb") == ("a\nb", False)
    assert plain.preview("x" * 3_000) == ("x" * 2_000, True)
    assert plain.preview("l\n" * 100)[1]
    assert plain.first_line("=====\nFAIL: test") == "FAIL: test"
