"""The tool that runs a shell command in the workspace."""

import errno
import signal
from collections.abc import Mapping
from typing import Any

from agents.errors import ToolError
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import CallStatus, ConcurrencyClass
from agents.tools.outputs import bounded, would
from agents.tools.processes import CALL_MARK, RUN_MARK, clean_environment
from agents.tools.session import Finished, run_in_session

DEFAULT_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 3600.0


class RunCommand:
    spec = ToolSpec(
        name="run_command",
        description=(
            "Run a shell command (/bin/sh -c) in the workspace and read its output and exit code. There is no terminal "
            "and no input: commands that ask get none. When the command ends, everything it started is ended too."
        ),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1},
                "timeout": {
                    "type": ["number", "null"],
                    "exclusiveMinimum": 0,
                    "description": f"Seconds; {DEFAULT_TIMEOUT_S:.0f} by default, at most {MAX_TIMEOUT_S:.0f}.",
                },
            },
            "required": ["command"],
        },
        concurrency=ConcurrencyClass.UNKNOWN,
        timeout_s=0.0,  # it keeps its own time, so that what came until then is not lost
    )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        command = args["command"]
        timeout_s = min(float(args.get("timeout") or DEFAULT_TIMEOUT_S), MAX_TIMEOUT_S)
        if context.dry_run:
            return would(f"run: {command}")
        marks = {RUN_MARK: context.run, CALL_MARK: context.call, **context.environment}
        try:
            finished = await run_in_session(
                ["/bin/sh", "-c", command],
                cwd=context.workspace,
                environment=clean_environment(marks),
                timeout_s=timeout_s,
                stopped=context.processes_ended,
            )
        except (OSError, ValueError) as error:
            raise ToolError(
                f"The command could not be started: {error}. {_advice(error)}", kind="not_started"
            ) from error
        return _told(finished, timeout_s)


def _told(finished: Finished, timeout_s: float) -> ToolOutput:
    """The output, and below it in brackets how it ended."""
    output = finished.output
    end = "\n" if output and not output.endswith("\n") else ""
    size = f"; {finished.total} bytes of output in all" if len(output) > 20_000 else ""
    text = f"{output}{end}[{_ending(finished, timeout_s)}{_left(finished)}{size}]"
    return bounded(
        text,
        is_error=finished.exit_code != 0,
        status=CallStatus.TIMEOUT.value if finished.timed_out else None,
    )


def _ending(finished: Finished, timeout_s: float) -> str:
    if finished.timed_out:
        return (
            f"timed out after {timeout_s:g} s: the command was killed with everything it had started; above is its "
            "output until then"
        )
    code = finished.exit_code or 0
    if code < 0:
        try:
            return f"killed by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exit code {code}"


def _left(finished: Finished) -> str:
    told = ""
    if not finished.timed_out and finished.ended.processes:
        told = "; processes that it had left running in the background were ended"
    if finished.ended.left:
        told += f"; {finished.ended.left} of its processes could not be ended and may still run"
    return told


def _advice(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "The workspace directory is gone."
    if isinstance(error, NotADirectoryError):
        return "The workspace is no directory any more."
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return "If the command is very long, write it to a file first and run that."
    if isinstance(error, OSError):
        return "This lies with the machine, not with the command."
    return "Leave out NUL characters and halves of characters."
