"""Live text: gathered, safe, whole again every second, and never after the event that has it all."""

import asyncio
from typing import Any

import orjson
import pytest

from control.runs import livetext
from control.runs.livetext import LiveTexts


class Heard:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def publish(self, topic: str, message: bytes) -> None:
        assert topic == "text"
        self.messages.append(orjson.loads(message))


@pytest.fixture
def heard() -> Heard:
    return Heard()


async def _until(heard: Heard, count: int) -> None:
    async with asyncio.timeout(5):
        while len(heard.messages) < count:
            await asyncio.sleep(0.005)


def _as_read(messages: list[dict[str, Any]]) -> str:
    """The text as a client that drops what does not fit has it."""
    text = ""
    for message in messages:
        if message["offset"] == 0:
            text = message["text"]
        elif message["offset"] == len(text):
            text += message["text"]
    return text


async def test_pieces_of_one_moment_go_out_together(heard: Heard) -> None:
    text = LiveTexts(heard).of("run")  # type: ignore[arg-type]
    for piece in ("All ", "tests ", "are ", "green. "):
        text.delta("call", 1, 0, piece)
    await _until(heard, 1)
    assert heard.messages == [
        {"run": "run", "type": "delta", "call": "call", "attempt": 1, "offset": 0, "text": "All tests are green. "}
    ]


async def test_the_last_word_waits_until_it_is_whole(heard: Heard) -> None:
    text = LiveTexts(heard).of("run")  # type: ignore[arg-type]
    text.delta("call", 1, 0, "the key is sk-proj-abcdefgh")
    await _until(heard, 1)
    text.delta("call", 1, 0, "ijklmnopqrstuvwxyz0123456789ABCDEF and so on ")
    await _until(heard, 2)
    sent = _as_read(heard.messages)
    assert "sk-proj-" not in sent
    assert sent.startswith("the key is ") and sent.endswith(" and so on ")


async def test_a_reader_who_came_late_gets_the_whole_text(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livetext, "WHOLE_EVERY_S", 0.1)
    text = LiveTexts(heard).of("run")  # type: ignore[arg-type]
    for number in range(30):
        text.delta("call", 1, 0, f"word{number} ")
        await asyncio.sleep(0.02)
    wholes = [message for message in heard.messages[1:] if message["offset"] == 0]
    assert len(wholes) >= 2
    late = heard.messages.index(wholes[0])
    assert _as_read(heard.messages[late:]) == _as_read(heard.messages)
    assert _as_read(heard.messages).startswith("word0 word1 ")


async def test_a_new_attempt_starts_from_nothing(heard: Heard) -> None:
    texts = LiveTexts(heard)  # type: ignore[arg-type]
    text = texts.of("run")
    text.delta("call", 1, 0, "wrong ")
    await _until(heard, 1)
    text.withdrawn("call", 1)
    text.delta("call", 2, 0, "right ")
    await _until(heard, 3)
    assert [message["type"] for message in heard.messages] == ["delta", "withdrawn", "delta"]
    assert (heard.messages[2]["attempt"], heard.messages[2]["offset"], heard.messages[2]["text"]) == (2, 0, "right ")


async def test_nothing_comes_after_the_call_has_ended(heard: Heard) -> None:
    texts = LiveTexts(heard)  # type: ignore[arg-type]
    texts.of("run").delta("call", 1, 0, "half a ")
    texts.forget_call("run", "call")
    texts.of("other").delta("call-2", 1, 0, "on ")
    await _until(heard, 1)
    assert [message["run"] for message in heard.messages] == ["other"]
