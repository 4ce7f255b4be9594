"""One streamed answer of three chunks after the other: our transport against httpx' own. ours|httpx REQUESTS WIDTH."""

import asyncio
import json
import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import httpx

from agents.providers.transport import StreamTransport

CHUNK = b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": "word " * 8}}]}).encode() + b"\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
BODY = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "' + b"x" * 4000 + b'"}]}'


class Server(asyncio.Protocol):
    """Answers every request in three writes, told apart by a turn of the event loop."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not data.endswith(BODY[-3:]):
            return
        piece = b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK)
        loop = asyncio.get_running_loop()
        self.transport.write(HEAD + b"\r\n" + piece)
        loop.call_later(0.001, self.transport.write, piece)
        loop.call_later(0.002, self.transport.write, piece + b"0\r\n\r\n")


def serve(pipe: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def ask(client: httpx.AsyncClient, url: str, times: int) -> None:
    for _ in range(times):
        async with client.stream("POST", url, content=BODY) as response:
            async for _ in response.aiter_raw():
                pass


async def main(which: str, port: int, requests: int, width: int) -> None:
    transport = StreamTransport() if which == "ours" else httpx.AsyncHTTPTransport()
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with httpx.AsyncClient(transport=transport, timeout=None) as client:
        await asyncio.gather(*(ask(client, url, 2) for _ in range(width)))
        cpu = time.process_time()
        await asyncio.gather(*(ask(client, url, requests // width) for _ in range(width)))
        used = time.process_time() - cpu
    print(json.dumps({"which": which, "cpu_us_per_request": round(1e6 * used / (requests // width * width), 1)}))


if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        asyncio.run(main(sys.argv[1], ours.recv(), int(sys.argv[2]), int(sys.argv[3])))
    finally:
        server.terminate()
