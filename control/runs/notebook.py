"""The notebook of an agent as its running runs write to it."""

from agents.errors import ToolError
from control.fleet import memory
from control.runs.dbthreads import DbThreads


class AgentNotebook:
    """Implements `ports.Notebook` for the runs of one agent."""

    def __init__(self, database: DbThreads, agent: str) -> None:
        self._database = database
        self._agent = agent

    async def keep(self, note: str, *, run: str, call: str) -> bool:
        try:
            kept = await self._database.patiently(memory.keep, self._agent, note, run=run, call=call)
        except memory.Refused as error:
            raise ToolError(str(error), kind=error.code) from error
        return bool(kept)
