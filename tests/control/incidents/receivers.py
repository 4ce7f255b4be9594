"""Services that alerts go to, as real servers on this machine: what they got, and what they answer."""

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Got:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    # Waits for this event first.
    held: threading.Event | None = None
    body: bytes = b"ok"


class Receiver:
    """An HTTP server; `answers` are given in order, the last one for ever."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answers: list[Answer] = [Answer()]
        self.url = ""

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.append(Got(path=self.path, headers={k.lower(): v for k, v in self.headers.items()}, body=body))
            answer = made.next_answer()
            if answer.held is not None:
                answer.held.wait(10)
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


class Post:
    """An SMTP server (RFC 5321, the least of it): `replies` to the end of data or to a recipient."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], str]] = []
        self.reply = "250 taken"
        self.to_recipient = "250 known"
        # The end of data is answered once this event is set.
        self.held: threading.Event | None = None
        self.port = 0


@contextmanager
def post_office() -> Iterator[Post]:
    made = Post()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

        def handle(self) -> None:
            sender, to = "", []
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                verb = line[:4].upper()
                if verb == "MAIL":
                    sender, to = line, []
                    self.say("250 ok")
                elif verb == "RCPT":
                    to.append(line)
                    self.say(made.to_recipient)
                elif verb == "DATA":
                    self.say("354 go on")
                    text = b""
                    while (part := self.rfile.readline()) != b".\r\n":
                        text += part
                    if made.held is not None:
                        made.held.wait(10)
                    if made.reply.startswith("2"):
                        made.mails.append((sender, to, text.decode()))
                    self.say(made.reply)
                elif verb == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    made.port = server.server_address[1]
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
