"""The way out when no summary can be had: old results become stubs that say where the whole of them is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.messages import AssistantMessage, Message, ToolMessage
from agents.policy.budgets import Gauge, Room, message_tokens, text_tokens
from agents.policy.human import split_notes
from agents.policy.redaction import cut
from agents.policy.steering import escape_marker

# A stub is about this long: shorter results are not worth one, and none is made of a stub.
_MIN_CHARS = 400
_STUB_TOKENS = 45
_MIN_KEPT_CHARS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Stubs:
    """`keep` maps the key of a call to the characters of its result that stay. Tokens as a provider counts."""

    keep: Mapping[str, int]
    before_tokens: int
    after_tokens: int


def stubs(messages: Sequence[Message], *, room: Room, gauge: Gauge, fixed: int = 0) -> Stubs | None:
    """Which results to shorten, oldest first, until the target is reached; None if there is nothing to gain.

    Results of the last answer are cut to head and tail, and only if without that the threshold is passed. Linear.
    """
    if room.target is None or room.threshold is None:
        return None
    total = fixed + sum(map(message_tokens, messages))
    excess = total - gauge.estimate_for(room.target)
    keep: dict[str, int] = {}
    latest = _latest(messages)
    saved = 0
    for message in messages[:latest]:
        if saved >= excess:
            break
        if isinstance(message, ToolMessage) and (gain := _gain(message)) > 0:
            keep[message.call] = 0
            saved += gain
    above = total - saved - gauge.estimate_for(room.threshold)
    if above > 0:
        saved += _cut_latest(messages[latest:], above, keep)
    if not keep:
        return None
    return Stubs(keep=keep, before_tokens=gauge.tokens(total), after_tokens=round((total - saved) * gauge.ratio))


def shortened(messages: Sequence[Message], stubs: Mapping[str, Mapping[str, Any]]) -> list[Message]:
    """The fold of a `context.compressed` with `stubs`: `{call: {"keep": n, "sha256"?, "bytes"?}}`. Notes stay."""
    return [
        _shortened(message, stubs[message.call])
        if isinstance(message, ToolMessage) and message.call in stubs
        else message
        for message in messages
    ]


def _shortened(message: ToolMessage, stub: Mapping[str, Any]) -> ToolMessage:
    said, notes = split_notes(message.text)
    where = f", kept as artifact {stub['sha256'][:16]}" if stub.get("sha256") else ""
    kept = int(stub.get("keep", 0))
    text = f"[Left out to make room: {len(said)} characters of this result{where}. Call the tool again if you need it.]"
    if kept:
        # The cut may take the escape of a look-alike away and leave the marker.
        text = f"{escape_marker(cut(said, kept)[0])}\n{text}"
    if len(text) >= len(said):
        return message
    return replace(message, text=f"{text}\n\n{notes}" if notes else text)


def _gain(message: ToolMessage) -> int:
    said, _ = split_notes(message.text)
    return text_tokens(said) - _STUB_TOKENS if len(said) > _MIN_CHARS else 0


def _latest(messages: Sequence[Message]) -> int:
    """Where the last answer begins."""
    at = len(messages) - 1
    while at > 0 and not isinstance(messages[at], AssistantMessage):
        at -= 1
    return max(at, 0)


def _cut_latest(group: Sequence[Message], excess: int, keep: dict[str, int]) -> int:
    """Cut what is long in the last group to an even share of what may stay; returns the estimated gain."""
    long = {m.call: split_notes(m.text)[0] for m in group if isinstance(m, ToolMessage) and _gain(m) > 0}
    tokens = {call: text_tokens(said) for call, said in long.items()}
    room = max(sum(tokens.values()) - excess, 0)
    saved = 0
    for left, (call, size) in zip(
        range(len(tokens), 0, -1), sorted(tokens.items(), key=lambda one: one[1]), strict=True
    ):
        share = room // left
        if size <= share:
            room -= size
            continue
        chars = max(_MIN_KEPT_CHARS, int(len(long[call]) * max(share - _STUB_TOKENS, 0) / max(size, 1)))
        room -= min(share, room)
        if chars + 200 < len(long[call]):
            keep[call] = chars
            saved += size - int(size * chars / len(long[call])) - _STUB_TOKENS
    return saved
