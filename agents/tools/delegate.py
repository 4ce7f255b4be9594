"""The tool that gives a part of the task to a sub-agent."""

from collections.abc import Mapping
from typing import Any

from agents.errors import SpawnRefused, ToolError
from agents.ports import ChildEnd, SpawnRequest, ToolContext, ToolOutput, ToolSpec
from agents.spec import CallStatus, ConcurrencyClass, Resume, Status
from agents.tools.outputs import would
from agents.tools.places import workspace_root


class Delegate:
    # Declared `safe` so that several delegates of one batch work at the same time: that is what they are for. Children
    # write under the same path locks as their parent. Since a child may touch any file, the call counts as a reader of
    # the whole workspace: neighbours that write stay in groups of their own, before or after it.
    spec = ToolSpec(
        name="delegate",
        description=(
            "Give a self-contained task to a sub-agent and get its final answer. It sees nothing of this conversation, "
            "so the task must say everything. Several delegate calls in one message run at the same time. With "
            "detached=true it works on a branch of its own and this call returns at once with its id."
        ),
        parameters={
            "type": "object",
            "properties": {
                "task": {"type": "string", "minLength": 1, "description": "What to do, what to know, what to answer."},
                "agent": {
                    "type": ["string", "null"],
                    "description": "The agent to use; by default the same as this one.",
                },
                "detached": {"type": ["boolean", "null"], "description": "Do not wait for the answer."},
            },
            "required": ["task"],
        },
        concurrency=ConcurrencyClass.SAFE,
        timeout_s=0.0,  # the child has fuses of its own
        resume=Resume.ADOPT,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        return (workspace_root(workspace),)

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        agent, detached = args.get("agent") or None, bool(args.get("detached"))
        if context.dry_run:
            return would(f"start a sub-agent{f' {agent}' if agent else ''} on: {args['task']}")
        request = SpawnRequest(parent=context.run, call=context.call, task=args["task"], agent=agent, detached=detached)
        try:
            child = await context.spawn(request)
        except SpawnRefused as error:
            raise ToolError(f"No sub-agent was started: {error.message}", kind=error.kind) from error
        if detached:
            return ToolOutput(
                text=f"Started sub-agent {child.run}. It works on its own; its answer does not come back here."
            )
        return _told(await child.wait())


def _told(end: ChildEnd) -> ToolOutput:
    """A child that ended is an answer; one that was stopped, tripped or lost is an error that says so."""
    answer = end.final.strip()
    if end.status is Status.COMPLETED:
        return ToolOutput(text=answer or "The sub-agent ended without an answer.")
    what = {
        Status.EXHAUSTED: "used up its turns; this is what it left",
        Status.INTERRUPTED: "was stopped",
        Status.TRIPPED: "was stopped by its guard",
        Status.FAILED: "failed",
        Status.LOST: "was lost with its worker; what it had done by then remains",
    }.get(end.status, f"is {end.status.value}")
    status = CallStatus.STOPPED.value if end.status is Status.INTERRUPTED else None
    is_error = end.status is not Status.EXHAUSTED
    text = f"The sub-agent {what}." if not answer else f"The sub-agent {what}: {answer}"
    return ToolOutput(text=text, is_error=is_error, status=status)
