"""What a model can be asked in a run: the next turn, a closing summary, or the summary of older turns."""

from collections.abc import Sequence
from dataclasses import replace

from agents.engine.compressor import Compressor
from agents.engine.window import Window, Windows, keeps_tools
from agents.messages import Message
from agents.policy.accounts import LAST_WORD_OUTPUT
from agents.policy.budgets import history_tokens, message_tokens
from agents.ports import ChatRequest, Picked


class Question:
    """How one request is made for whichever model is picked, and how it can be mended when it is refused.

    `name` None: the call has the model's own. `first`: the place of the model to ask first.
    """

    name: str | None = None
    turn: int | None = None
    first: int | None = None
    mendable = False
    last_word = False

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    async def prepare(self, picked: Picked) -> None:
        """Before a model is asked for the first time."""
        await self._windows.of(picked)

    def request(self, picked: Picked) -> ChatRequest:
        raise NotImplementedError

    def size(self, picked: Picked) -> tuple[int, bool]:
        """Tokens of the request as they are expected, and whether the model's own counts are behind that."""
        window = self._windows.known(picked)
        return window.tokens, window.gauge.samples > 0

    def context(self, picked: Picked) -> dict[str, int]:
        """Evidence for judging a refusal: tokens of the request and of the window, where both are known."""
        return {}

    async def compress(self, picked: Picked) -> bool:
        return False

    def repair(self, picked: Picked) -> Sequence[str]:
        return ()

    def lower(self, picked: Picked, cap: int, stated: int | None) -> None:
        """To the model's own limit; or, where its window is `stated`, to what this request leaves of it."""
        window = self._windows.known(picked)
        if stated is None:
            window.cap = cap if window.cap is None else min(window.cap, cap)
        else:
            window.left, window.stated = cap, stated
            window.room = window.room.stated(stated)


class NextTurn(Question):
    """The conversation as it stands, with the tools."""

    mendable = True

    def __init__(self, windows: Windows, compressor: Compressor, turn: int) -> None:
        super().__init__(windows)
        self._compressor = compressor
        self.turn = turn

    async def prepare(self, picked: Picked) -> None:
        window = await self._windows.of(picked)
        window.sent.update()
        await self._compressor.make_room(window, self.turn)

    def request(self, picked: Picked) -> ChatRequest:
        window = self._windows.known(picked)
        window.sent.update()
        return ChatRequest(parts=window.sent.parts, tools=window.tools, max_output_tokens=window.output(window.tokens))

    def context(self, picked: Picked) -> dict[str, int]:
        return _context(self._windows.known(picked))

    async def compress(self, picked: Picked) -> bool:
        window = self._windows.known(picked)
        window.overflowed()
        return await self._compressor.compress(window, self.turn)

    def repair(self, picked: Picked) -> Sequence[str]:
        return self._windows.known(picked).sent.mend()


class Closing(NextTurn):
    """A last word of the program behind the conversation, answered in text and outside of any turn."""

    name = "summary"

    def __init__(self, windows: Windows, compressor: Compressor, instruction: Message) -> None:
        super().__init__(windows, compressor, 0)
        self.turn = None
        self._instruction = instruction

    def size(self, picked: Picked) -> tuple[int, bool]:
        tokens, measured = super().size(picked)
        return tokens + message_tokens(self._instruction), measured

    def request(self, picked: Picked) -> ChatRequest:
        window = self._windows.known(picked)
        window.sent.update()
        return ChatRequest(
            parts=window.sent.with_(self._instruction),
            tools=window.tools if keeps_tools(picked.model) else None,
            max_output_tokens=window.output(window.tokens),
            no_calls=True,
        )


class LastWord(Closing):
    """The closing words of a run that trips: short, and paid from what is kept for them."""

    last_word = True

    def request(self, picked: Picked) -> ChatRequest:
        request = super().request(picked)
        return replace(request, max_output_tokens=min(request.max_output_tokens or LAST_WORD_OUTPUT, LAST_WORD_OUTPUT))


class Summary(Question):
    """A few messages of their own, without a history and without tools."""

    name = "compression"

    def __init__(self, windows: Windows, messages: Sequence[Message], first: int | None) -> None:
        super().__init__(windows)
        self._messages = messages
        self.first = first

    def size(self, picked: Picked) -> tuple[int, bool]:
        gauge = self._windows.known(picked).gauge
        return gauge.tokens(history_tokens(self._messages)), gauge.samples > 0

    def request(self, picked: Picked) -> ChatRequest:
        parts = [picked.model.encode_message(message) for message in self._messages]
        window = self._windows.known(picked)
        cap = window.output(window.gauge.tokens(history_tokens(self._messages)))
        return ChatRequest(parts=parts, tools=None, max_output_tokens=cap, no_calls=True)


def _context(window: Window) -> dict[str, int]:
    size = window.room.window
    return {} if size is None else {"input_tokens": window.tokens, "context_window": size}
