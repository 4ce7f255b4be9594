"""The tools of MCP servers as tools of a run, and what they answer as text."""

import asyncio
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agents.errors import ToolError
from agents.ports import ServerState, StopReport, Tool, ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.mcp.config import McpServer
from agents.tools.mcp.connection import Connection
from agents.tools.mcp.schemas import description_of, names_for, parameters_of
from agents.tools.outputs import bounded, would

if TYPE_CHECKING:
    from mcp import types


class McpTool:
    """One tool of one server. What only reads, as the server says, may overlap and be run again."""

    def __init__(self, name: str, tool: "types.Tool", connection: Connection) -> None:
        hints = tool.annotations
        reads = bool(hints and hints.read_only_hint)
        self._tool = tool.name
        self._connection = connection
        self._reads = reads
        self.spec = ToolSpec(
            name=name,
            description=description_of(connection.server.name, tool.description),
            parameters=parameters_of(tool.input_schema),
            concurrency=ConcurrencyClass.SAFE if reads else ConcurrencyClass.UNKNOWN,
            timeout_s=connection.server.timeout_s,
            resume=Resume.RERUN if reads else Resume.UNKNOWN,
        )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if context.dry_run and not self._reads:
            given = json.dumps(args, ensure_ascii=False)
            return would(f"call {self._tool} of the MCP server {self._connection.server.name} with {given}")
        return _told(await self._connection.call(self._tool, dict(args)))


class McpServers:
    """Implements `ports.ToolServers` for one run."""

    def __init__(self, servers: Sequence[McpServer], *, cwd: str, environment: Mapping[str, str]) -> None:
        self._servers = servers
        self._cwd = cwd
        self._environment = environment
        self._connections: list[Connection] = []

    async def connect(self, told: Callable[[ServerState], None]) -> Sequence[Tool]:
        """The tools of all servers that answer, in the order of the servers; the others are told as down."""
        self._connections = [
            Connection(server, cwd=self._cwd, environment=self._environment, told=told) for server in self._servers
        ]
        # It takes a second, which must not be the loop's.
        await asyncio.to_thread(importlib.import_module, "mcp")
        found = await asyncio.gather(*(_tools_of(connection) for connection in self._connections))
        return [tool for tools in found for tool in tools]

    async def close(self, *, at_once: bool) -> StopReport:
        """End all of them, side by side."""
        reports = await asyncio.gather(*(connection.close(at_once=at_once) for connection in self._connections))
        self._connections = []
        return StopReport(
            processes=sum(report.processes for report in reports), left=sum(report.left for report in reports)
        )


async def _tools_of(connection: Connection) -> list[Tool]:
    try:
        listed = await connection.open()
    except ToolError:
        return []  # told as down already
    by_name = {tool.name: tool for tool in listed}
    names = names_for(connection.server.name, by_name)
    return [McpTool(name, by_name[tool], connection) for name, tool in names.items()]


def _told(result: "types.CallToolResult") -> ToolOutput:
    """Texts as they are; of everything else what it is."""
    parts = [_part(block) for block in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    text = "\n".join(part for part in parts if part)
    return bounded(text or "(no output)", is_error=bool(result.is_error))


def _part(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4} bytes; it cannot be shown here]"
        case "resource_link":
            return f"[resource {block.uri}]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return str(text) if text is not None else f"[resource {block.resource.uri}, no text]"
        case _:
            return f"[{block.type}]"
