"""The tool that applies a patch to several files: all of it fits, or nothing is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.errors import ToolError
from agents.ports import Edit, ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass
from agents.tools.locks import locked
from agents.tools.outputs import would
from agents.tools.patching import new_content, patched
from agents.tools.patchtext import FileChange, parse
from agents.tools.places import Place, find_to_write, touched, workspace_root
from agents.tools.writing import Before, encoded, read_before, replace


class ApplyPatch:
    spec = ToolSpec(
        name="apply_patch",
        description=(
            "Change, make, move or delete several files at once. The patch is a unified diff, or '*** Begin Patch' with"
            " '*** Update File: p', '*** Add File: p', '*** Delete File: p' ... '*** End Patch'. If a part does not"
            " fit, nothing is changed."
        ),
        parameters={
            "type": "object",
            "properties": {"patch": {"type": "string", "minLength": 1}},
            "required": ["patch"],
        },
        concurrency=ConcurrencyClass.PATH,
        timeout_s=60.0,
    )

    def touches(self, args: Mapping[str, Any], workspace: str) -> tuple[str, ...]:
        """All files of the patch; a patch that cannot be read is kept away from everything until it says so itself."""
        try:
            paths = [path for change in parse(args["patch"]) for path in change.paths]
        except ToolError:
            return (workspace_root(workspace),)
        return tuple(place for path in paths for place in touched(workspace, {"path": path}, "path"))

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        changes = parse(args["patch"])
        for change in changes:
            for hunk in change.hunks:
                # Only what the patch adds: a line that stays as it is may hold a marker of its own.
                added = [line for line in hunk.new if line not in hunk.old]
                encoded("\n".join(added), "The patch")
        if context.dry_run:
            await context.in_thread(lambda: _steps(context, changes))
            return would("change " + ", ".join(path for change in changes for path in change.paths) + ".")
        edits = await context.in_thread(lambda: _apply(context, changes))
        told = "\n".join(_line(edit) for edit in edits)
        return ToolOutput(text=f"Applied the patch:\n{told}", edits=tuple(edits))


@dataclass(frozen=True, slots=True)
class _Step:
    place: Place
    before: Before
    content: bytes | None


def _apply(context: ToolContext, changes: Sequence[FileChange]) -> list[Edit]:
    while True:
        places = _places(context, changes)
        with locked([place.real for place in places], context.cancel):
            if _places(context, changes) == places:
                return _write(context, _steps(context, changes))


def _places(context: ToolContext, changes: Sequence[FileChange]) -> list[Place]:
    return [find_to_write(context.workspace, path) for change in changes for path in change.paths]


def _steps(context: ToolContext, changes: Sequence[FileChange]) -> list[_Step]:
    """What to write where, decided for all files before any is touched; later parts see what earlier ones decided."""
    steps: dict[str, _Step] = {}

    def look(path: str) -> _Step:
        place = find_to_write(context.workspace, path)
        if place.real not in steps:
            before = read_before(place)
            steps[place.real] = _Step(place, before, before.content)
        return steps[place.real]

    def put(step: _Step, content: bytes | None) -> None:
        steps[step.place.real] = _Step(step.place, step.before, content)

    for change in changes:
        _decide(change, look, put)
    return list(steps.values())


def _decide(change: FileChange, look: Callable[[str], _Step], put: Callable[[_Step, bytes | None], None]) -> None:
    """One part of the patch: look at what is there by now, put what shall be."""
    old = look(change.path) if change.path is not None else None
    if old is not None and old.content is None:
        raise ToolError(
            f"The patch changes {change.path!r}, which is not there. Nothing was changed.", kind="not_found"
        )
    if change.target is None:
        if old is not None and old.content is not None:
            if change.hunks and patched(old.content, change):
                raise ToolError(
                    f"The patch deletes {change.path!r}, which holds more than the patch says. Nothing was changed. "
                    "Read the file again.",
                    kind="bad_patch",
                )
            put(old, None)
        return
    new = look(change.target)
    if (old is None or old.place != new.place) and new.content is not None:
        raise ToolError(
            f"The patch makes {change.target!r}, which is there already. Nothing was changed.", kind="exists"
        )
    if old is None or old.content is None:
        put(new, encoded(new_content(change), "The patch"))
        return
    content = patched(old.content, change)
    if old.place != new.place:
        put(old, None)
        new = _Step(new.place, Before(None, stat=old.before.stat), None)  # a moved file keeps its mode bits
    put(new, content)


def _write(context: ToolContext, steps: Sequence[_Step]) -> list[Edit]:
    """Each file whole by itself; if one fails after others were written, the error says which."""
    edits: list[Edit] = []
    for step in sorted(steps, key=lambda step: step.content is None):  # deletions last: better twice than not at all
        try:
            edits.append(replace(context, step.place, step.before, step.content))
        except ToolError as error:
            if not edits:
                raise
            done = ", ".join(edit.path for edit in edits)
            raise ToolError(f"{error.message} Written before that: {done}.", kind="partly") from error
    return edits


def _line(edit: Edit) -> str:
    if edit.sha256 is None:
        return f"deleted {edit.path}"
    verb = "made" if edit.before_sha256 is None else "unchanged" if edit.before_sha256 == edit.sha256 else "changed"
    return f"{verb} {edit.path} ({edit.size} bytes)"
