"""What one model can hold in this run: its window as known so far, its history, its tools, and how full it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agents.engine.sent import Sent
from agents.engine.threads import POOL
from agents.engine.transcript import Transcript
from agents.messages import SystemMessage, Usage
from agents.policy.budgets import Gauge, Room, message_tokens, result_chars, room, text_tokens
from agents.policy.recovery import MIN_OUTPUT_TOKENS
from agents.ports import ChatModel, Picked, ToolSpec
from agents.spec import ModelSpec

# Of what is not sent yet the count is only expected.
_CARE = 1.05
# What identifies a model, whichever of its keys is used.
Key = tuple[str, str, str]


@dataclass(slots=True, kw_only=True)
class Window:
    """`fixed`: what every request carries besides the history, as estimated. `cap`: the most an answer may have;
    `left`: what the request in hand leaves for it, once the provider has said so; `stated`: the window in its words."""

    sent: Sent
    tools: bytes | None
    tool_tokens: int
    fixed: int
    room: Room
    cap: int | None
    left: int | None = None
    stated: int | None = None
    gauge: Gauge = field(default_factory=Gauge)

    def output(self, tokens: int) -> int | None:
        """What the answer to a request of so many tokens may have. Where the window is known for certain, no more than
        is left of it: else every request would be refused once."""
        caps = [cap for cap in (self.cap, self.left) if cap is not None]
        if self.stated is not None and self.cap is not None:
            caps.append(max(self.stated - round(tokens * _CARE), MIN_OUTPUT_TOKENS))
        return min(caps, default=None)

    @property
    def estimated(self) -> int:
        """Of the whole request, by our own count."""
        return self.sent.tokens + self.tool_tokens

    @property
    def tokens(self) -> int:
        """Of the whole request, as the provider will probably count."""
        return self.gauge.tokens(self.estimated)

    def too_full(self) -> bool:
        return self.room.too_full(self.tokens)

    def measured(self, usage: Usage | None) -> None:
        self.gauge = self.gauge.measured(self.estimated, usage.prompt if usage else None)

    def overflowed(self) -> None:
        """The provider says that it was too much."""
        self.room = self.room.overflowed(self.tokens)


class Windows:
    """One per run; each model is looked up once and keeps what it has learned."""

    def __init__(self, *, transcript: Transcript, system: SystemMessage, tools: Sequence[ToolSpec]) -> None:
        self._transcript = transcript
        self._system = system
        self._tools = tools
        self._open: dict[Key, Window] = {}
        self._latest: Window | None = None

    async def of(self, picked: Picked) -> Window:
        found = self._open.get(_key(picked.spec)) or await self._new(picked)
        self._latest = found
        found.left = None
        return found

    def known(self, picked: Picked) -> Window:
        """The one that `of` gave at the beginning of the question."""
        return self._open[_key(picked.spec)]

    def result_chars(self) -> int:
        """What the model reads of one tool result."""
        return result_chars(self._latest.room if self._latest else room(None))

    async def _new(self, picked: Picked) -> Window:
        spec, model = picked.spec, picked.model
        size = await known_size(spec)
        tools = model.encode_tools(self._tools)
        tool_tokens = text_tokens(tools.decode("utf-8", "replace")) if tools else 0
        return self._open.setdefault(
            _key(spec),
            Window(
                sent=Sent(model, self._system, self._transcript),
                tools=tools,
                tool_tokens=tool_tokens,
                fixed=message_tokens(self._system) + tool_tokens,
                room=room(size, spec.max_output_tokens),
                cap=spec.max_output_tokens,
            ),
        )


async def known_size(spec: ModelSpec) -> int | None:
    """The window in tokens by the run's own word or the catalog's."""
    if spec.window:
        return spec.window
    size: int | None = await POOL.submit(lambda: _catalogued(spec))
    return size


def keeps_tools(model: ChatModel) -> bool:
    """Whether this wire wants the tools named wherever the history holds calls, also when none may be made."""
    return bool(getattr(model, "keeps_tools", False))


def _key(spec: ModelSpec) -> Key:
    return spec.model, spec.base_url, spec.provider


def _catalogued(spec: ModelSpec) -> int | None:
    """In a thread: the catalog may have to load its library first. What it cannot tell, an overflow will."""
    from agents.providers import catalog

    look_up: Callable[[str, str], int | None] = catalog.window
    try:
        return look_up(spec.model, spec.base_url)
    except Exception:
        return None
