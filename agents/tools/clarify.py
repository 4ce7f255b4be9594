"""The tool that asks a person and waits for the answer."""

from collections.abc import Mapping
from typing import Any

from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.outputs import would


class Clarify:
    spec = ToolSpec(
        name="clarify",
        description=(
            "Ask the person in charge one question and wait for the answer. Use it when the task cannot be done "
            "rightly without a decision that only a person can take."
        ),
        parameters={
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "minLength": 1,
                    "description": "One question, with all it needs to be answered.",
                },
                "choices": {
                    "type": ["array", "null"],
                    "items": {"type": "string", "minLength": 1},
                    "description": "The answers to choose from, if there are only a few. Free text is allowed anyway.",
                },
            },
            "required": ["question"],
        },
        concurrency=ConcurrencyClass.NEVER,
        timeout_s=0.0,  # a person takes the time a person takes; the run's own fuse is the limit
        resume=Resume.RERUN,  # asking again does no harm; the same question stays open
        waits_for_person=True,
    )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        question = args["question"]
        choices = args.get("choices") or None
        if context.dry_run:
            return would(f"ask: {question}" + (f" (choices: {', '.join(choices)})" if choices else ""))
        answer = await context.ask(question, choices)
        return ToolOutput(text=answer.text or "(the answer was empty)")
