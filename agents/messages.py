"""The neutral history form: what was said to the model and by it, independent of any provider's wire."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call as the model asked for it.

    `call` is our own key, unique for ever; `wire_id` is the id that goes over the wire, made unique within
    the history; `args` is the raw argument text, untouched, which may be no valid JSON at all.
    """

    call: str
    wire_id: str
    name: str
    args: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the model reads as the user's words.

    `ours` names the paragraphs of `text` that no person wrote (a summary of older turns, a filler): compression may
    drop them, never the rest.
    """

    text: str
    ours: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """An answer of the model.

    `opaque` holds provider fields (reasoning content, signatures) that go back to the provider named in
    `origin` and to no other.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    opaque: Mapping[str, Any] | None = None
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The result of one call, exactly as the model is to read it."""

    call: str
    wire_id: str
    name: str
    text: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


_ROLES: dict[str, type[Message]] = {
    "system": SystemMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
}
_NAMES = {kind: name for name, kind in _ROLES.items()}


def to_plain(message: Message) -> dict[str, Any]:
    """The message as plain JSON, opaque fields included: `{role, text, ...}`."""
    return {"role": _NAMES[type(message)], **asdict(message)}


def from_plain(raw: Mapping[str, Any]) -> Message:
    """The message again. Raises KeyError or TypeError for what `to_plain` did not write."""
    given = {name: value for name, value in raw.items() if name != "role"}
    if raw["role"] == "user":
        given["ours"] = tuple(given.get("ours") or ())
    if raw["role"] == "assistant":
        given["tool_calls"] = tuple(ToolCall(**call) for call in given.get("tool_calls") or ())
    return _ROLES[raw["role"]](**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one attempt in one normal form.

    `input` counts uncached prompt tokens, `cache_read` and `cache_write` the cached ones, `output` everything
    the model wrote, with `reasoning` inside it.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the request, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        return self.prompt + self.output

    def plus(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
        )
