"""A scripted OpenAI-compatible server on bare sockets: the other end of the wire as providers really speak it.

    async with ScriptedServer([say("Hello"), status(429, retry_after=1), say("…", before=[wait(0.1)])]) as server:
        ... server.base_url ... server.requests[0].json

A script is a list of responses, one for each request in order, or a function (sync or async) from the request's JSON
to a response. `ThreadedServer` is the same for tests without a loop. It shares no code with the drill server.
"""

from tests.scripted_server.dsl import (
    Dialect,
    Response,
    ask_tools,
    chunk,
    cut,
    gate,
    html,
    raw,
    reset,
    say,
    stall,
    status,
    stream,
    wait,
    whole,
)
from tests.scripted_server.server import ScriptedServer, Seen, ThreadedServer

__all__ = [
    "Dialect",
    "Response",
    "ScriptedServer",
    "Seen",
    "ThreadedServer",
    "ask_tools",
    "chunk",
    "cut",
    "gate",
    "html",
    "raw",
    "reset",
    "say",
    "stall",
    "status",
    "stream",
    "wait",
    "whole",
]
