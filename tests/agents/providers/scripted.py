"""A provider over real TCP that plays answers byte for byte, and what a test needs to ask a model behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from agents.ports import ChatAnswer, ChatModel, ChatRequest
from agents.providers import Stalls, connect
from agents.spec import ModelSpec

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CASES = FIXTURES / "cases"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
QUICK = Stalls(byte_silence_s=20, no_progress_s=20)


@dataclass
class Play:
    """One answer: its head, its body in the pieces in which it is written, and what comes after it.

    `chunked` frames the pieces; otherwise the body ends with the connection. `hold` keeps the socket open after the
    last piece; `drop` hangs up without the last chunk of the framing; `gate` is waited for before each further piece.
    """

    pieces: Sequence[bytes]
    head: bytes = STREAM_HEAD
    chunked: bool = False
    hold: bool = False
    drop: bool = False
    gate: Callable[[], "asyncio.Future[None]"] | None = None


@dataclass
class Heard:
    head: bytes
    body: bytes

    @property
    def json(self) -> dict:
        return orjson.loads(self.body)


@dataclass
class Provider:
    """A listening provider. `plays` are used up in order, the last one for ever."""

    plays: list[Play]
    port: int = 0
    heard: list[Heard] = field(default_factory=list)
    connections: int = 0
    sent: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up_at: float = 0.0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.hung_up_at = asyncio.get_running_loop().time()
            self.hung_up.set()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        self.heard.append(Heard(head, await reader.readexactly(length)))
        play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
        framing = b"transfer-encoding: chunked\r\n\r\n" if play.chunked else b"\r\n"
        writer.write(play.head + framing)
        for number, piece in enumerate(play.pieces):
            if number and play.gate is not None:
                await play.gate()
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if play.chunked else piece)
            await writer.drain()
        self.sent.set()
        if play.drop:
            return False
        if play.hold:
            await reader.read()
            return False
        if play.chunked:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return play.chunked


@asynccontextmanager
async def provider(*plays: Play) -> AsyncIterator[Provider]:
    """A provider on a free port for as long as the block runs."""
    served = Provider(list(plays))
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(served.talk(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=2**22)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def model_at(
    base_url: str, *, key: str | None = None, stalls: Stalls = QUICK, kind: str = "openai", limit: int | None = None
) -> ChatModel:
    spec = ModelSpec(model="m", base_url=base_url, provider=kind, max_output_tokens=limit)
    return connect(spec, key, stalls=stalls)


async def ask(model: ChatModel, on_text: Callable[[str], None] = lambda text: None) -> ChatAnswer:
    return await model.ask(ChatRequest(parts=[b'{"role":"user","content":"go"}'], tools=None), on_text)


async def answer_to(*pieces: bytes, kind: str = "openai", limit: int | None = None, **play: object) -> ChatAnswer:
    """What a model says whose server sends exactly these pieces."""
    async with provider(Play(pieces, **play)) as served:  # type: ignore[arg-type]
        return await ask(model_at(served.base_url, kind=kind, limit=limit))


def case(name: str) -> dict[str, bytes]:
    """The variants of one field case, by name, from its fixture file (`=== name` opens a variant)."""
    return _variants(CASES / f"{name}.txt")


def recorded(api: str) -> dict[str, bytes]:
    """Streams in the shape in which an API sends them, by name."""
    return _variants(FIXTURES / "streams" / f"{api}.txt")


def _variants(path: Path) -> dict[str, bytes]:
    text = path.read_bytes()
    parts = (part.partition(b"\n") for part in text.split(b"=== ")[1:])
    return {title.decode(): body for title, _, body in parts}


def chunk(delta: dict | None = None, finish: str | None = None, **more: object) -> bytes:
    """One stream event with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more})


def event(value: object) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


DONE = b"data: [DONE]\n\n"
