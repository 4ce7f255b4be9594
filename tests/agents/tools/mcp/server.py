"""A small MCP server made with the official SDK: `server.py stdio` or `server.py http PORT`, and ways to misbehave."""

import asyncio
import os
import subprocess
import sys

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("tester")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READS, description="Adds two numbers.")
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool()
def environment(name: str) -> str:
    return os.environ.get(name, "(unset)")


@server.tool()
def where() -> str:
    return f"{os.getpid()} {os.getcwd()}"


@server.tool(structured_output=False)
def big(size: int) -> str:
    return "x" * size


@server.tool()
def fail() -> str:
    raise ValueError("no such thing")


@server.tool()
def refuse() -> str:
    """With the code that the protocol leaves to servers, and that the SDK takes for a closed connection."""
    raise MCPError(-32000, "the index is not ready")


@server.tool()
async def hang(note: str) -> str:
    await asyncio.sleep(600)
    return note


@server.tool()
def die(code: int) -> str:
    sys.stderr.write("the disk is full\n")
    sys.stderr.flush()
    os._exit(code)


@server.tool()
def spawn() -> str:
    """Starts a grandchild that leaves group and session."""
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    return str(child.pid)


@server.tool(name="odd.name/ü", annotations=READS)
def odd() -> str:
    return "\x00odd\x1b[31m"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        print("a line that is no message")
        sys.stdout.flush()
        server.run()
    elif sys.argv[1] == "mute":
        sys.stdin.read()
    elif sys.argv[1] == "flood":
        server.run() if len(sys.argv) > 2 else sys.stdout.write("y" * 20_000_000)
    else:
        server.run("streamable-http", port=int(sys.argv[2]))
