"""The tool that searches the files of the workspace."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.errors import ToolError
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import CallStatus, ConcurrencyClass, Resume
from agents.tools.outputs import bounded
from agents.tools.places import find, touched
from agents.tools.processes import CALL_MARK, RUN_MARK, clean_environment
from agents.tools.session import run_in_session

_SCANNER = str(Path(__file__).with_name("scanner.py"))
_TIMEOUT_S = 30.0
_BAD_PATTERN = 2


class SearchFiles:
    spec = ToolSpec(
        name="search_files",
        description=(
            "Search the text files of the workspace, line by line, for a regular expression (Python syntax; (?i)"
            " ignores case). Answers `path:line: text`."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1},
                "path": {"type": ["string", "null"], "description": "Directory or file to search; default everything."},
            },
            "required": ["pattern"],
        },
        concurrency=ConcurrencyClass.SAFE,
        paths=("path",),
        timeout_s=0.0,  # it keeps its own time, so that what was found until then is not lost
        resume=Resume.RERUN,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        return touched(workspace, args, "path")

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        place = find(context.workspace, args.get("path"))
        if not await context.in_thread(lambda: os.path.exists(place.real)):
            raise ToolError(f"There is no {place.shown!r} to search. Look with list_files.", kind="not_found")
        marks = {RUN_MARK: context.run, CALL_MARK: context.call, **context.environment}
        try:
            finished = await run_in_session(
                [sys.executable, "-I", "-S", "-W", "ignore", _SCANNER, place.root, place.real, args["pattern"]],
                cwd=place.root,
                environment=clean_environment(marks),
                timeout_s=_TIMEOUT_S,
                stopped=context.processes_ended,
            )
        except (OSError, ValueError) as error:  # a NUL, half a character, or megabytes of pattern
            raise ToolError(f"The pattern cannot be searched for: {error}.", kind="bad_pattern") from error
        if finished.timed_out:
            text = f"{finished.output}[stopped after {_TIMEOUT_S:g} s; give a simpler pattern or a path]"
            return bounded(text, is_error=True, status=CallStatus.TIMEOUT.value)
        if finished.exit_code == _BAD_PATTERN:
            raise ToolError(finished.output.strip(), kind="bad_pattern")
        return bounded(finished.output.rstrip("\n"), is_error=finished.exit_code != 0)
