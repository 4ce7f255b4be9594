"""What is in a file or a directory, as text for the model."""

import os
from collections.abc import Mapping
from typing import Any

from agents.errors import ToolError
from agents.ports import CancelToken, ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.locks import Cancelled
from agents.tools.outputs import bounded
from agents.tools.places import Place, find, opened, touched

MAX_ENTRIES = 1000
MAX_LINES = 2000
# Below what the engine lets through, so that a part of a file ends at a line and not in a gap.
MAX_TEXT = 20_000
# One line alone may be longer, which the engine then cuts; but not as long as it likes.
MAX_LINE = 1024 * 1024
_PIECE = 64 * 1024
_MAX_SCAN = 64 * 1024 * 1024
_SNIFF = 8192


class ListFiles:
    spec = ToolSpec(
        name="list_files",
        description="List the entries of a directory of the workspace: directories end in '/', files show their size.",
        parameters={
            "type": "object",
            "properties": {
                "path": {
                    "type": ["string", "null"],
                    "description": "Directory, relative to the workspace; default its top.",
                }
            },
        },
        concurrency=ConcurrencyClass.SAFE,
        paths=("path",),
        timeout_s=30.0,
        resume=Resume.RERUN,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        return touched(workspace, args, "path")

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        place = find(context.workspace, args.get("path"))
        return bounded(await context.in_thread(lambda: _listing(place, context.cancel)))


class ReadFile:
    spec = ToolSpec(
        name="read_file",
        description=(
            "Read a text file of the workspace, exactly as it is. Long files come in parts; the last line, in "
            "brackets, says how to go on."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "File, relative to the workspace."},
                "start": {"type": ["integer", "null"], "minimum": 1, "description": "First line, counted from 1."},
                "lines": {
                    "type": ["integer", "null"],
                    "minimum": 1,
                    "description": f"How many lines; at most {MAX_LINES}.",
                },
            },
            "required": ["path"],
        },
        concurrency=ConcurrencyClass.SAFE,
        paths=("path",),
        timeout_s=30.0,
        resume=Resume.RERUN,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        return touched(workspace, args, "path")

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        place = find(context.workspace, args["path"])
        # JSON has one kind of number, and some models write 2.0.
        start, lines = int(args.get("start") or 1), int(min(args.get("lines") or MAX_LINES, MAX_LINES))
        return ToolOutput(text=await context.in_thread(lambda: _part(place, start, lines, context.cancel)))


def _listing(place: Place, cancel: CancelToken) -> str:
    try:
        with os.scandir(place.real) as entries:
            shown = []
            for entry in entries:
                if cancel.cancelled:
                    raise Cancelled
                shown.append((entry.name, _entry(entry)))
    except NotADirectoryError:
        size = os.stat(place.real).st_size
        return f"{place.shown} ({size} bytes) is a file; read it with read_file."
    except FileNotFoundError as error:
        raise ToolError(f"There is no directory {place.shown!r}. List its parent to see what there is.") from error
    except OSError as error:
        raise ToolError(f"{place.shown!r} cannot be listed: {error.strerror}.") from error
    if not shown:
        return f"{place.shown} is empty."
    lines = [text for _, text in sorted(shown)]
    if len(lines) > MAX_ENTRIES:
        left = len(lines) - MAX_ENTRIES
        lines = [
            *lines[:MAX_ENTRIES],
            f"[{left} more entries are not shown; list a directory below or use search_files]",
        ]
    return "\n".join(lines)


def _entry(entry: "os.DirEntry[str]") -> str:
    try:
        if entry.is_symlink():
            return f"{entry.name} -> {os.readlink(entry.path)}"
        if entry.is_dir(follow_symlinks=False):
            return f"{entry.name}/"
        return f"{entry.name} ({entry.stat(follow_symlinks=False).st_size} bytes)"
    except OSError:  # gone meanwhile
        return entry.name


def _part(place: Place, start: int, count: int, cancel: CancelToken) -> str:
    with opened(place) as descriptor, open(descriptor, "rb", closefd=False) as file:
        first = file.read(_SNIFF)
        encoding = _encoding(first, place, os.fstat(descriptor).st_size)
        if encoding.startswith("utf-16"):
            file.seek(0)
            return _part_of_lines(
                file.read(_MAX_SCAN).decode(encoding, "replace").encode().splitlines(True), start, count
            )
        file.seek(0)
        taken = _Taken(start, count)
        number = scanned = 0
        within = False
        # In pieces: a line may be as long as the file, and the file as long as the disk.
        while piece := file.readline(_PIECE):
            number += not within
            within = not piece.endswith(b"\n")
            scanned += len(piece)
            if cancel.cancelled:
                raise Cancelled
            taken.add(number, piece)
            if scanned > _MAX_SCAN:
                return _told(taken, start, number, more=True)
        return _told(taken, start, number, more=False)


class _Taken:
    """The lines from `start` on, up to `count` of them and not much more than MAX_TEXT bytes."""

    def __init__(self, start: int, count: int) -> None:
        self._start, self._end = start, start + count
        self._size = 0
        self.pieces: list[bytes] = []
        self.last = start - 1
        # Whether the last of them goes on beyond what was taken.
        self.cut = False

    def add(self, number: int, piece: bytes) -> None:
        """A line, or a piece of one."""
        if not self._start <= number < self._end:
            return
        if number > self.last:
            if self._size >= MAX_TEXT:
                return
            self.last = number
        elif self._size >= MAX_LINE:
            self.cut = True
            return
        self.pieces.append(piece)
        self._size += len(piece)


def _part_of_lines(lines: list[bytes], start: int, count: int) -> str:
    taken = _Taken(start, count)
    for number, line in enumerate(lines, start=1):
        for at in range(0, len(line), _PIECE):
            taken.add(number, line[at : at + _PIECE])
    return _told(taken, start, len(lines), more=False)


def _told(taken: _Taken, start: int, total: int, *, more: bool) -> str:
    """The lines, and in brackets what they are a part of unless they are all."""
    if total == 0:
        return "[the file is empty]"
    if start > total:
        raise ToolError(f"The file has only {total} lines, so there is no line {start}.", kind="past_end")
    text = b"".join(taken.pieces).decode("utf-8", "replace")
    end = taken.last
    if start == 1 and end == total and not more and not taken.cut:
        return text
    rest = f"; line {end} is longer than shown" if taken.cut or (more and end == total) else ""
    rest += f"; go on with start={end + 1}" if end < total or (more and not taken.cut) else ""
    return (
        f"{text}{'' if text.endswith(chr(10)) else chr(10)}[lines {start}-{end} of {total}{'+' if more else ''}{rest}]"
    )


def _encoding(first: bytes, place: Place, size: int) -> str:
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        first.decode()
    except UnicodeDecodeError as error:
        if b"\x00" in first and error.start < len(first) - 4:
            raise ToolError(
                f"{place.shown!r} is no text but binary ({size} bytes). Look at it with run_command, such as "
                f"`file` or `xxd | head`.",
                kind="binary",
            ) from error
    return "utf-8"
