"""One MCP server as one run sees it: up or down, its tools, and calls that end when they must."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.errors import ToolError
from agents.ids import new_id
from agents.policy.redaction import cut, make_safe
from agents.ports import ServerState, StopReport
from agents.tools.mcp.config import McpServer
from agents.tools.processes import CALL_MARK, clean_environment

if TYPE_CHECKING:
    from mcp import ClientSession, types

CONNECT_S = 20.0
MOST_TOOLS, MOST_PAGES = 128, 32
# A server that has gone is started again when it is needed, but neither at once nor again and again.
MOST_STARTS, WITHIN_S, REST_S = 4, 600.0, 2.0
PING_S = 2.0
_CLOSE_S = 3.0
_LAST_WORD_S = 0.05


@dataclass(slots=True)
class _Life:
    """One time that the server was up."""

    session: "asyncio.Future[ClientSession]"
    tools: list["types.Tool"] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    owner: "asyncio.Task[None] | None" = None


class Connection:
    """Everything of one server in one run. A session lives in a task of its own: it must end where it began."""

    def __init__(
        self, server: McpServer, *, cwd: str, environment: Mapping[str, str], told: Callable[[ServerState], None]
    ) -> None:
        self.server = server
        self.report = StopReport()
        self._cwd = cwd
        self._environment = environment
        self._told = told
        self._life: _Life | None = None
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._starting = asyncio.Lock()
        self._hurry = False
        self._closed = False
        self._told_lost: _Life | None = None
        self._calls: set[asyncio.Task[Any]] = set()

    async def open(self) -> "Sequence[types.Tool]":
        """Start it and ask for its tools. Raises ToolError; takes a bounded time."""
        async with self._starting:
            life = await self._start()
        return life.tools

    async def call(self, tool: str, args: dict[str, Any]) -> "types.CallToolResult":
        """One call. Raises ToolError if the server refuses, is gone or goes meanwhile; a cancel returns at once."""
        from mcp import MCPError, types
        from pydantic import ValidationError

        life = await self._up()
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=args))
        # Not the caller's own task: what the SDK does after a cancel may take seconds, which nobody waits for.
        work = asyncio.create_task(life.session.result().send_request(request, types.CallToolResult))
        gone = asyncio.create_task(life.over.wait())
        self._calls.add(work)
        work.add_done_callback(self._calls.discard)
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():  # it may have answered with its last breath, which is on its way still
                await asyncio.wait({work}, timeout=_LAST_WORD_S)
        finally:
            gone.cancel()
            work.cancel()
        if not work.done():
            raise self._down(life.why)
        try:
            return work.result()
        except MCPError as error:
            # The SDK's code for a closed connection is also the one that servers use for any trouble of theirs.
            doubtful = error.code == types.CONNECTION_CLOSED or self.server.url is not None
            if doubtful and not await self._knows_us(life):
                life.why = life.why or f"the session is over ({_short(error)})"
                life.leave.set()
                self._lost(life)  # now: its good-bye may outlast the start of the next one
                raise self._down(life.why) from error
            raise ToolError(f"{self.server.name} refused the call: {_short(error)}", kind="mcp") from error
        except ValidationError as error:
            raise ToolError(f"{self.server.name} answered what is no result: {_short(error)}", kind="mcp") from error
        except asyncio.CancelledError as error:
            raise self._down(life.why) from error
        except Exception as error:
            raise ToolError(f"{self.server.name}: {type(error).__name__}: {_short(error)}", kind="mcp") from error

    async def close(self, *, at_once: bool) -> StopReport:
        """End it, its processes and its connections. `at_once` does without good-byes. Returns what was ended."""
        self._hurry, self._closed = at_once, True
        for call in list(self._calls):
            call.cancel()
        life = self._life
        if life is None or life.owner is None:
            return self.report
        life.leave.set()
        if at_once and not life.session.done():
            life.owner.cancel()
        _, late = await asyncio.wait({life.owner}, timeout=_CLOSE_S)
        for owner in late:
            owner.cancel()
        left = self.report.left + (1 if late and self.server.command else 0)
        return StopReport(processes=self.report.processes, left=left)

    async def _knows_us(self, life: _Life) -> bool:
        """Whether a server that refused a call is still there and has our session; behind an address a new one may
        sit there."""
        from mcp import MCPError, types

        ping = asyncio.create_task(life.session.result().send_request(types.PingRequest(), types.EmptyResult))
        self._calls.add(ping)
        ping.add_done_callback(self._calls.discard)
        gone = asyncio.create_task(life.over.wait())
        try:
            await asyncio.wait({ping, gone}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
            failed = not ping.done() or ping.cancelled() or ping.exception() is not None
            if failed:  # that it has gone is known a moment later
                await asyncio.wait({gone}, timeout=_LAST_WORD_S)
            answered = ping.done() and not ping.cancelled() and not life.over.is_set()
        finally:
            gone.cancel()
            ping.cancel()
        if self.server.url is None:
            return answered  # whatever it said: pipes that are open lead to nobody else
        return answered and not isinstance(ping.exception(), MCPError)

    # --- the server's lives -----------------------------------------------------------------------------------

    async def _up(self) -> _Life:
        async with self._starting:
            life = self._life
            if life is not None and life.session.done() and not life.over.is_set() and not life.leave.is_set():
                return life
            now = asyncio.get_running_loop().time()
            too_often = len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_S
            if self._closed or too_often:
                raise self._down(life.why if life else "")
            rest = self._starts[-1] + REST_S - now if self._starts else 0.0
            if rest > 0:
                await asyncio.sleep(rest)
            return await self._start()

    async def _start(self) -> _Life:
        loop = asyncio.get_running_loop()
        self._starts.append(loop.time())
        life = self._life = _Life(loop.create_future())
        life.owner = asyncio.create_task(self._own(life), name=f"mcp {self.server.name}")
        limit = min(CONNECT_S, self.server.timeout_s)
        try:
            async with asyncio.timeout(limit):
                await asyncio.shield(life.session)
        except TimeoutError as error:
            life.why = life.why or f"it did not answer within {limit:g} s"
            self._hurry = True
            life.owner.cancel()
            self._lost(life)
            raise self._down(life.why) from error
        except asyncio.CancelledError:
            if life.session.cancelled():
                raise self._down(life.why) from None
            self._hurry = True
            life.owner.cancel()
            raise
        return life

    async def _own(self, life: _Life) -> None:
        from mcp import ClientSession, types

        self._hurry = False
        info = types.Implementation(name="pilothouse", version="1")
        try:
            async with self._streams(life) as (read, write), ClientSession(read, write, client_info=info) as session:
                await session.initialize()
                life.tools = await self._list(session)
                life.session.set_result(session)
                self._told(ServerState(server=self.server.name, up=True, tools=tuple(t.name for t in life.tools)))
                await life.leave.wait()
        except asyncio.CancelledError:
            life.why = life.why or "it was ended from here"
        except BaseException as error:  # groups of the SDK's task groups among them
            life.why = life.why or _cause(error)
        finally:
            life.over.set()
            if not life.session.done():
                life.session.cancel()
            self._lost(life)

    @asynccontextmanager
    async def _streams(self, life: _Life) -> AsyncIterator[tuple[Any, Any]]:
        server = self.server
        if server.url is not None:
            from agents.tools.mcp.http import reached

            named = server.headers_env.items()
            headers = {header: os.environ[name] for header, name in named if name in os.environ}
            async with reached(
                server.url, headers=headers, read_s=server.timeout_s + 5, hurry=lambda: self._hurry
            ) as streams:
                yield streams
            return
        from agents.tools.mcp.stdio import launched

        assert server.command is not None
        given = {name: os.environ[name] for name in server.env if name in os.environ}
        environment = {**clean_environment(given), **self._environment, CALL_MARK: new_id()}
        async with launched(
            [server.command, *server.args],
            cwd=self._cwd,
            environment=environment,
            hurry=lambda: self._hurry,
            ended=self._count,
        ) as pipes:
            watch = asyncio.create_task(self._watch(life, pipes.closed, pipes.why))
            try:
                yield pipes.read, pipes.write
            finally:
                watch.cancel()

    async def _watch(self, life: _Life, closed: asyncio.Event, why: Callable[[], str]) -> None:
        await closed.wait()
        life.why = life.why or why()
        life.over.set()
        life.leave.set()
        self._lost(life)

    async def _list(self, session: "ClientSession") -> "list[types.Tool]":
        from mcp import types

        found: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await session.list_tools(params=params)
            found += page.tools
            cursor = page.next_cursor
            if not cursor or len(found) >= MOST_TOOLS:
                break
        wanted = self.server.tools
        return [tool for tool in found if wanted is None or tool.name in wanted][:MOST_TOOLS]

    # --- what is told -----------------------------------------------------------------------------------------

    def _count(self, report: StopReport) -> None:
        self.report = StopReport(
            processes=self.report.processes + report.processes, left=self.report.left + report.left
        )

    def _lost(self, life: _Life) -> None:
        """Tell once that it has gone, unless it was let go."""
        if self._closed or life is not self._life or self._told_lost is life:
            return
        self._told_lost = life
        self._told(ServerState(server=self.server.name, up=False, why=make_safe(life.why).text))

    def _down(self, why: str) -> ToolError:
        told = f": {make_safe(why).text}" if why else ""
        return ToolError(f"The MCP server {self.server.name} is down{told}. Go on without it.", kind="mcp_down")


def _cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {_short(error)}"


def _short(error: BaseException) -> str:
    return cut(" ".join(str(error).split()), 500)[0]
