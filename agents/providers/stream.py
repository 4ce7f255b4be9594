"""Reads one answer off the wire, whatever its form, into a fold; ends at the end mark."""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import Any, Protocol

from agents.messages import Usage
from agents.policy.chanting import Chant, ChantDetector, chant_in, last_part
from agents.providers import wire
from agents.providers.http import Stalls, Watch
from agents.providers.sse import BOM, SseDecoder, TooLarge

MAX_BODY_BYTES = 64 * 1024 * 1024
_SAMPLE_BYTES = 4096
# How often thinking and arguments are listened to; one frame may hold one word in 200 bytes.
_LISTEN_BYTES = 16 * 1024


class Broken(Exception):
    """What came is no answer. `kind` None leaves the judgement to the evidence, which is `body`."""

    def __init__(self, kind: str | None, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.body = body


class Chanting(Broken):
    """The model says the same again and again and will not come to an end."""

    def __init__(self, chant: Chant, body: bytes) -> None:
        what = f"the model repeats itself: {chant.block[:60]!r} {chant.copies} times in a row"
        super().__init__("malformed_response", what, body)
        self.chant = chant


class Fold(Protocol):
    """Builds an answer out of a stream. Its methods raise Broken for an error inside of it and for frames out of form.

    `progress` grows with every piece of an answer; `finished` turns true with a finish reason, `ended` with the end
    mark, after which nothing follows. `mark` is the data of the end mark, where it is no JSON. `counted` says that the
    provider has told how much was written, so that `usage()` needs no estimate.
    """

    mark: bytes
    progress: int
    finished: bool
    ended: bool

    @property
    def counted(self) -> bool: ...

    def event(self, name: str, data: bytes) -> None: ...
    def document(self, value: Any, body: bytes) -> None:
        """One JSON document: a complete answer in place of a stream."""
        ...

    def fresh_text(self) -> str:
        """Visible text since the last call."""
        ...

    def usage(self) -> Usage | None: ...
    def notes(self) -> tuple[str, ...]:
        """What is odd about the provider's count."""
        ...

    def unseen(self) -> Iterable[tuple[Sequence[object], bool]]:
        """What the model writes beside its text, in pieces: its thinking, and (True) the arguments of its last call."""
        ...

    def written(self) -> str:
        """Everything that the model wrote so far: text, thinking and calls."""
        ...


class Reader:
    """Feeds a fold from the bytes of one response and keeps the stall clocks of `watch`."""

    def __init__(
        self, fold: Fold, watch: Watch, stalls: Stalls, on_text: Callable[[str], None], *, hears_chants: bool = False
    ) -> None:
        self._text = ChantDetector() if hears_chants else None
        self._came = self._looked = 0
        self._fold = fold
        self._watch = watch
        self._stalls = stalls
        self._on_text = on_text
        self._decoder = SseDecoder()
        self._document: list[bytes] = []
        self._held = 0
        self.sample = b""
        self.ttft_ms: float | None = None

    async def read(self, chunks: AsyncIterable[bytes]) -> None:
        """Read to the end of the response or until the watch ends it. Raises Broken.

        The first character that is no space tells a document from an event stream; content types are often wrong.
        """
        take: Callable[[bytes], None] | None = None
        head = b""
        now = asyncio.get_running_loop().time
        watch = self._watch
        async for chunk in chunks:
            watch.byte_at = now()
            if take is None:
                head = (head + chunk).lstrip()
                if BOM.startswith(head):
                    continue
                chunk = head.removeprefix(BOM).lstrip()
                if not chunk:
                    continue
                take = self._take_document if chunk[:1] in (b"{", b"[", b"<", b'"') else self._take_events
            take(chunk)
        if self._document:
            self._parse_document(b"".join(self._document))
        elif not self._fold.ended:
            self._take_last_event()

    def _take_events(self, chunk: bytes) -> None:
        fold = self._fold
        if fold.ended:
            return
        if len(self.sample) < _SAMPLE_BYTES:
            self.sample += chunk[:_SAMPLE_BYTES]
        self._came += len(chunk)
        before, was_finished = fold.progress, fold.finished
        try:
            for name, data in self._decoder.feed(chunk):
                fold.event(name, data)
                if fold.ended:
                    break
        except TooLarge as error:
            raise Broken("malformed_response", str(error), self.sample) from None
        if fold.progress != before:
            self._progressed()
        if self._decoder.rest_is(fold.mark):
            # Some servers end neither the line nor the event of their end mark, and keep the socket open.
            fold.ended = True
        if fold.ended or fold.finished:
            self._settle(was_finished)

    def _settle(self, was_finished: bool) -> None:
        """The answer is complete: wait shortly for what may still belong to it, then let the connection go."""
        if self._fold.ended or self._fold.usage() is not None:
            self._watch.end_within(self._stalls.close_wait_s)
        elif not was_finished:
            self._watch.end_within(self._stalls.usage_wait_s)

    def _take_last_event(self) -> None:
        """An event that the stream left open. After a finish reason it can only be half of a usage chunk: no harm."""
        before = self._fold.progress
        try:
            for name, data in self._decoder.end():
                self._fold.event(name, data)
        except Broken as broken:
            if not (self._fold.finished and broken.kind == "malformed_response"):
                raise
        if self._fold.progress != before:
            self._progressed()

    def _take_document(self, chunk: bytes) -> None:
        self._document.append(chunk)
        self._held += len(chunk)
        if self._held > MAX_BODY_BYTES:
            raise Broken("malformed_response", f"an answer larger than {MAX_BODY_BYTES} bytes")
        if not chunk.isspace():
            self._watch.progress_at = self._watch.byte_at

    def _parse_document(self, body: bytes) -> None:
        self.sample = body[:_SAMPLE_BYTES]
        if body.startswith(b"<"):
            raise Broken("malformed_response", "the answer is an HTML page, not JSON; check the base URL", self.sample)
        try:
            self._fold.document(wire.loads(body), body)
        except wire.NotJSON as error:
            events = [*self._decoder.feed(body), *self._decoder.end()]
            if not events:
                raise Broken("malformed_response", f"the answer is no JSON ({error})", self.sample) from None
            for name, data in events:
                self._fold.event(name, data)
        self._progressed()

    def _progressed(self) -> None:
        watch = self._watch
        watch.progress_at = watch.byte_at
        if self.ttft_ms is None:
            self.ttft_ms = round((watch.byte_at - watch.started_at) * 1000, 1)
        text = self._fold.fresh_text()
        if text:
            self._on_text(text)
        if self._text is not None:
            self._listen(self._text, text)

    def _listen(self, said: ChantDetector, text: str) -> None:
        """Raises Chanting. What is not shown is looked at each few thousand bytes."""
        if chant := said.feed(text):
            raise Chanting(chant, self.sample)
        if self._came - self._looked < _LISTEN_BYTES:
            return
        self._looked = self._came
        for pieces, code in self._fold.unseen():
            if pieces and (chant := chant_in(last_part(pieces), code=code, heard=self._came)):
                raise Chanting(chant, self.sample)
