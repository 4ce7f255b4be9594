"""The event stream decoder: any chunking of the same bytes gives the same events, and lines end where they should."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers import sse
from agents.providers.sse import SseDecoder, SseEvent, TooLarge

LINES = st.sampled_from(
    [b"", b"", b"data: x", b"data:y", b"data", b"data:  two", b": note", b":", b"event: ping", b"event:", b"id: 7",
     b"retry: 5", "data: 北\u2028京\u0085 🙂".encode(), b"data: \xef\xbb\xbf", b"\xff\xfe", b"data: [DONE]"]
)  # fmt: skip
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.tuples(LINES, ENDS), max_size=20))
    return draw(st.sampled_from([b"", sse.BOM])) + b"".join(line + end for line, end in lines) + draw(LINES)


def decoded(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [found for one in chunks for found in decoder.feed(one)] + decoder.end()


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(c, len(stream)) for c in cuts), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


@given(streams(), st.lists(st.integers(0, 300), max_size=12))
def test_any_chunking_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    assert decoded(*cut(stream, cuts)) == decoded(stream)


@given(streams())
def test_one_byte_at_a_time_gives_the_same_events(stream: bytes) -> None:
    assert decoded(*(stream[i : i + 1] for i in range(len(stream)))) == decoded(stream)


@given(st.lists(LINES, max_size=15), st.lists(st.integers(0, 200), max_size=8), ENDS)
def test_the_kind_of_line_end_changes_nothing(lines: list[bytes], cuts: list[int], end: bytes) -> None:
    expected = decoded(b"".join(line + b"\n" for line in lines))
    assert decoded(*cut(b"".join(line + end for line in lines), cuts)) == expected


def test_data_lines_of_one_event_are_joined_with_a_line_feed() -> None:
    assert decoded(b"event: e\ndata: a\ndata:b\n\n") == [SseEvent("e", b"a\nb")]


def test_a_name_lasts_for_one_event_only() -> None:
    assert decoded(b"event: e\n\ndata: a\n\n") == [SseEvent("", b"a")]


def test_comments_and_blank_lines_are_no_events() -> None:
    assert decoded(b"id: 7\n\n: hello\n\n:\n\n\n") == []


def test_a_byte_order_mark_is_dropped_once_and_at_the_start_only() -> None:
    assert decoded(sse.BOM + b"data: a\n\n") == [SseEvent("", b"a")]
    assert decoded(sse.BOM + sse.BOM + b"data: a\n\n") == []
    assert decoded(b"data: " + sse.BOM + b"\n\n") == [SseEvent("", sse.BOM)]


def test_an_event_that_never_ends_is_refused_instead_of_filling_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    decoder = SseDecoder()
    for _ in range(100):
        assert decoder.feed(b"data: " + b"x" * 90 + b"\n\n")
    with pytest.raises(TooLarge):
        for _ in range(100):
            decoder.feed(b"x" * 100)


def test_an_open_end_mark_is_seen_before_its_line_ends() -> None:
    decoder = SseDecoder()
    decoder.feed(b"data: a\n\ndata: [DO")
    assert not decoder.rest_is(b"[DONE]")
    decoder.feed(b"NE] ")
    assert decoder.rest_is(b"[DONE]")
