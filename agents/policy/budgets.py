"""How full the window is: tokens estimated from the bytes of a text by their kind, corrected by measured usage."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

_UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS = _UPPER + _UPPER.lower()
_DIGITS = b"0123456789"
_BLANKS = b" \t\r\n"

# Tokens per byte or character of one kind, fitted to two current tokenizers over code, prose, logs, JSON and a dozen
# languages; within a quarter of the truth for ordinary text. Old tokenizers need up to twice as many for Greek or
# Hebrew: the measured ratio takes care of that.
_PER_LETTER, _PER_UPPER, _PER_DIGIT, _PER_MARK, _PER_WORD, _PER_LINE = 0.15, 0.65, 0.68, 0.48, 0.5, 0.2
# Blanks go with the words beside them; long runs of nothing else are cheap, but not for nothing.
_PER_BLANK = 0.045
_PER_2_BYTES, _PER_3_BYTES, _PER_4_BYTES = 0.6, 0.95, 2.0

_PER_MESSAGE = 5
_PER_CALL = 12


def text_tokens(text: str) -> int:
    """Tokens of a text by kind: letters, capitals, digits, marks, words, lines; other scripts by their width."""
    ascii_part = text.encode("ascii", "ignore")
    size = len(ascii_part)
    letters = size - len(ascii_part.translate(None, _LETTERS))
    upper = size - len(ascii_part.translate(None, _UPPER))
    digits = size - len(ascii_part.translate(None, _DIGITS))
    blanks = size - len(ascii_part.translate(None, _BLANKS))
    tokens = _PER_LETTER * letters + _PER_UPPER * upper + _PER_DIGIT * digits
    tokens += _PER_MARK * (size - letters - digits - blanks)
    tokens += _PER_BLANK * blanks
    tokens += _PER_WORD * len(ascii_part.split()) + _PER_LINE * ascii_part.count(b"\n")
    if size != len(text):
        tokens += _wide(text, size)
    return int(tokens + 0.999)


def _wide(text: str, size: int) -> float:
    """What is not ASCII, by bytes per character in UTF-8; the counts follow from three lengths, without a walk."""
    of_four = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)
    rest = len(text) - size - of_four
    of_three = len(text.encode("utf-8", "surrogatepass")) - size - 4 * of_four - 2 * rest
    return _PER_2_BYTES * (rest - of_three) + _PER_3_BYTES * of_three + _PER_4_BYTES * of_four


def message_tokens(message: Message) -> int:
    """Tokens of one message on the wire, with its frame."""
    tokens = _PER_MESSAGE + text_tokens(message.text)
    match message:
        case SystemMessage() | UserMessage():
            return tokens
        case ToolMessage(wire_id=wire_id):
            return tokens + len(wire_id) // 3
        case AssistantMessage(tool_calls=calls, opaque=opaque):
            for call in calls:
                tokens += _PER_CALL + text_tokens(call.name) + text_tokens(call.args) + len(call.wire_id) // 3
            return tokens + (len(str(opaque)) // 4 if opaque else 0)


def history_tokens(messages: Iterable[Message]) -> int:
    return sum(map(message_tokens, messages))


# --- correction by measured usage --------------------------------------------------------------------------------

_MIN_RATIO, _MAX_RATIO = 0.25, 4.0
# Below this the frame that a provider puts around a request outweighs the text.
_MIN_SAMPLE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """What measured usage taught about the estimates of one model.

    `ratio` is measured over estimated; the last request measured `anchor` tokens where `anchored` was the estimate.
    """

    ratio: float = 1.0
    samples: int = 0
    anchor: int = 0
    anchored: int = 0

    def measured(self, estimated: int, prompt: int | None) -> "Gauge":
        """After a request: `estimated` of everything sent (prompt and tools too), `prompt` as the provider counted."""
        if not prompt or prompt < 0 or estimated < _MIN_SAMPLE:
            return self
        sample = min(max(prompt / estimated, _MIN_RATIO), _MAX_RATIO)
        ratio = sample if not self.samples else (self.ratio + sample) / 2
        if sample != prompt / estimated:  # a count out of all proportion is not built upon
            return replace(self, ratio=ratio, samples=self.samples + 1, anchor=0, anchored=0)
        return Gauge(ratio=ratio, samples=self.samples + 1, anchor=prompt, anchored=estimated)

    def tokens(self, estimated: int) -> int:
        """Tokens to expect for an estimate: the last measured request plus what came since, or by ratio alone."""
        if self.anchor and estimated >= self.anchored:
            return self.anchor + round((estimated - self.anchored) * self.ratio)
        return round(estimated * self.ratio)

    def estimate_for(self, tokens: int) -> int:
        """The estimate that corresponds to so many tokens, by ratio."""
        return int(tokens / self.ratio)


# --- the window --------------------------------------------------------------------------------------------------

_DEFAULT_OUTPUT = 8192
_MIN_WINDOW = 1024
_MAX_RESULT_CHARS = 24_000
_MIN_RESULT_CHARS = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The window of one model in tokens; None where it is not known, until an overflow tells."""

    window: int | None
    output: int = _DEFAULT_OUTPUT

    @property
    def usable(self) -> int | None:
        """What a request may hold: the window less what the answer may need, which takes a quarter at most."""
        return None if self.window is None else self.window - min(self.output, self.window // 4)

    @property
    def threshold(self) -> int | None:
        """Compress before a request is larger than this. A batch weighs more in a small window."""
        if self.usable is None or self.window is None:
            return None
        share = 0.7 if self.window <= 32_768 else 0.8 if self.window <= 262_144 else 0.85
        return int(self.usable * share)

    @property
    def target(self) -> int | None:
        """What a compressed request should hold: far below the threshold, so that it does not happen every turn."""
        return None if self.threshold is None else self.threshold // 2

    def fullness(self, tokens: int) -> float | None:
        """Share of the window that a request of so many tokens takes; evidence for judging an error."""
        return None if not self.window else round(tokens / self.window, 3)

    def too_full(self, tokens: int) -> bool:
        return self.threshold is not None and tokens > self.threshold

    def overflowed(self, tokens: int) -> "Room":
        """The window as an overflow shows it: a request of so many tokens, by our count, was too large."""
        seen = max(int(tokens * 0.95), _MIN_WINDOW)
        return replace(self, window=seen if self.window is None else min(self.window, seen))

    def stated(self, tokens: int) -> "Room":
        """The window as the provider names it while it refuses a request."""
        named = max(tokens, _MIN_WINDOW)
        return replace(self, window=named if self.window is None else min(self.window, named))


def room(window: int | None, max_output: int | None = None) -> Room:
    return Room(window=window, output=max_output or _DEFAULT_OUTPUT)


def result_chars(place: Room) -> int:
    """How many characters of one tool result the model gets to read: less where a whole batch would fill the window."""
    if place.usable is None:
        return _MAX_RESULT_CHARS
    return max(_MIN_RESULT_CHARS, min(_MAX_RESULT_CHARS, int(place.usable * 0.15 * 3)))
