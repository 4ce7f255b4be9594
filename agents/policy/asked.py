"""What the guard hears of a run: calls the model asks for, what they answered, and what was said between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What is known about a tool without its name: an MCP annotation, a declared poll, an identity rule.

    `identity`: fields or an expression that make the call the same call, False to exempt the tool, None to judge by
    the arguments as a whole.
    """

    read_only: bool | None = None
    poll: bool = False
    identity: tuple[str, ...] | str | bool | None = None


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One tool call before it runs. `call` counts up through the run (an index or a `seq`), `batch` likewise.

    `args` is the raw text or the parsed object. `tokens` and `cost_usd` are what asking for it has cost.
    """

    call: int
    batch: int
    tool: str
    args: Any
    hints: Hints = NO_HINTS
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What a file holds after a call. `exact`: a checksum of its bytes (a SHA-256 where a log has one); `loose`: one
    that passes over blanks at line ends, `code` over remarks too, where the content itself is known; `before`: the
    checksum of what it held until then, "" if nobody knows.
    """

    exact: str
    loose: str = ""
    code: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the call answered. `edits`: path -> what it holds now, for files the call changed.

    `heard`: in place of a text that was not kept (the model got a stub): what `Guard.heard` gave when it was new.
    """

    text: str
    is_error: bool = False
    edits: Mapping[str, Edited] = field(default_factory=dict)
    heard: Mapping[str, Any] | None = None
