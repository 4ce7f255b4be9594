"""The tools that change one file: write it whole, or replace a piece of it."""

from collections.abc import Mapping
from typing import Any

from agents.errors import ToolError
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass
from agents.tools.editing import replaced
from agents.tools.outputs import would
from agents.tools.places import Place, find_to_write, touched
from agents.tools.reading import ListFiles, ReadFile
from agents.tools.writing import Before, change, encoded, read_before

_PATH = {"type": "string", "minLength": 1, "description": "File, relative to the workspace."}


class WriteFile:
    spec = ToolSpec(
        name="write_file",
        description="Write a whole file of the workspace: make it, with its directories, or replace all its content.",
        parameters={
            "type": "object",
            "properties": {"path": _PATH, "content": {"type": "string", "description": "All of the new content."}},
            "required": ["path", "content"],
        },
        concurrency=ConcurrencyClass.PATH,
        paths=("path",),
        timeout_s=60.0,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        return touched(workspace, args, "path")

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        content = encoded(args["content"], "The content")
        if context.dry_run:
            place = find_to_write(context.workspace, args["path"])
            return would(f"write {len(content)} bytes to {place.shown}.")
        edit, before = await context.in_thread(
            lambda: change(context, args["path"], lambda _before, _place: content, blind=True)
        )
        return ToolOutput(text=_written(edit.path, before, content), edits=(edit,))


class EditFile:
    spec = ToolSpec(
        name="edit_file",
        description=(
            "Replace a piece of a file. `old` must stand in the file exactly as given, blanks and line breaks included,"
            " and only once, unless all=true."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": _PATH,
                "old": {"type": "string", "minLength": 1, "description": "The text to replace, copied exactly."},
                "new": {"type": "string", "description": "What stands there afterwards; may be empty."},
                "all": {"type": ["boolean", "null"], "description": "Replace every occurrence."},
            },
            "required": ["path", "old", "new"],
        },
        concurrency=ConcurrencyClass.PATH,
        paths=("path",),
        timeout_s=60.0,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        return touched(workspace, args, "path")

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        new = encoded(args["new"], "The new text")
        try:
            old = args["old"].encode()
        except UnicodeEncodeError as error:
            raise ToolError("The old text holds half of a character; no file holds that. Copy it again.") from error
        every, told = bool(args.get("all")), ""

        def decide(before: Before, place: Place) -> bytes:
            nonlocal told
            if before.content is None:
                raise ToolError(f"There is no file {place.shown!r}. Make it with write_file.", kind="not_found")
            content, count, line = replaced(before.content, old, new, every=every, shown=place.shown)
            where = f"line {line}" if count == 1 else f"{count} places"
            same = " The text is the same as before." if content == before.content else ""
            told = f"Edited {place.shown} at {where}.{same}"
            return content

        if context.dry_run:
            place = find_to_write(context.workspace, args["path"])
            await context.in_thread(lambda: decide(read_before(place), place))
            return would(f"do this: {told}")
        edit, before = await context.in_thread(lambda: change(context, args["path"], decide))
        return ToolOutput(text=told + linked_note(before), edits=(edit,))


def _written(path: str, before: Before, content: bytes) -> str:
    lines = content.count(b"\n") + (0 if content.endswith(b"\n") or not content else 1)
    size = f"{len(content)} bytes, {lines} lines"
    if before.content is None:
        return f"Made {path} ({size})."
    if before.content == content:
        return f"{path} already had exactly this content ({size}); nothing changed."
    return f"Replaced {path} ({size})." + linked_note(before)


def linked_note(before: Before) -> str:
    """A rename gives the file a new body, so other hard links to the old one are told about, not followed."""
    others = before.stat.st_nlink - 1 if before.stat else 0
    return f" It had {others} other hard link(s), which keep the old content." if others > 0 else ""


__all__ = ["EditFile", "ListFiles", "ReadFile", "WriteFile"]
