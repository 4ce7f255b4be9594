"""The tool that keeps a note for the agent's later runs."""

from collections.abc import Mapping
from typing import Any

from agents.policy.memory import LONGEST_NOTE
from agents.ports import Notebook, ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.outputs import would

REMEMBER = "remember"


class Remember:
    """Made for one run, over the notebook of its agent."""

    spec = ToolSpec(
        name=REMEMBER,
        description=(
            "Keep a note for later runs of this agent; they read it before they begin. Keep only what will still be "
            "true and of use then: how this project is built and tested, a decision and its reason, a trap. Never keep "
            "secrets, nor what the files say themselves. One fact per note."
        ),
        parameters={
            "type": "object",
            "properties": {"note": {"type": "string", "minLength": 1, "maxLength": LONGEST_NOTE}},
            "required": ["note"],
        },
        concurrency=ConcurrencyClass.UNKNOWN,
        timeout_s=30.0,
        resume=Resume.RERUN,  # the same call writes its note once
    )

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        note = args["note"].strip()
        if not note:
            return ToolOutput(text="The note is blank; nothing was kept.", is_error=True)
        if context.dry_run:
            return would(f"keep the note: {note}")
        if await self._notebook.keep(note, run=context.run, call=context.call):
            return ToolOutput(text="Kept. Later runs of this agent will read it; this one goes on without it.")
        return ToolOutput(text="There is such a note already; nothing was changed.")
