"""Applies the hunks of a patch to one file's content. Pure: a hunk fits exactly one place, or the patch is refused."""

from collections.abc import Sequence

from agents.errors import ToolError
from agents.tools.patchtext import FileChange, Hunk


def patched(content: bytes, change: FileChange) -> bytes:
    """The content after all hunks, in order. Raises ToolError (kind `bad_patch`) that names the hunk and its lines."""
    text = content.decode("utf-8", "surrogateescape")
    raw = text.split("\n")
    closed = raw[-1] == ""  # the file ends with a line end
    if closed:
        raw.pop()
    cr = "\r" if text.count("\r\n") * 2 > text.count("\n") else ""
    if not closed:
        raw[-1] += cr  # like the others while it may become one of them
    start, shift = 0, 0
    for number, hunk in enumerate(change.hunks, start=1):
        at = _place([line.removesuffix("\r") for line in raw], hunk, start, shift, number, change)
        raw[at : at + len(hunk.old)] = _new_lines(raw[at : at + len(hunk.old)], hunk, cr)
        start = at + len(hunk.new)
        shift += len(hunk.new) - len(hunk.old)
        if start == len(raw) and hunk.line is not None and hunk.new:
            closed = not hunk.no_newline
    if not raw:
        return b""
    closed = closed or not content
    if not closed:
        raw[-1] = raw[-1].removesuffix(cr)
    return ("\n".join(raw) + ("\n" if closed else "")).encode("utf-8", "surrogateescape")


def _new_lines(there: Sequence[str], hunk: Hunk, cr: str) -> list[str]:
    """The hunk's new lines; those that stay keep the blanks and line ends that they have in the file."""
    lines, at = [], 0
    for line in hunk.new:
        kept = next((n for n in range(at, len(hunk.old)) if hunk.old[n] == line), None)
        if kept is None:
            lines.append(line + cr)
        else:
            lines.append(there[kept])
            at = kept + 1
    return lines


def new_content(change: FileChange) -> str:
    """What a file that the patch makes shall hold."""
    lines = [line for hunk in change.hunks for line in hunk.new]
    closed = not (change.hunks and change.hunks[-1].no_newline)
    return "\n".join(lines) + ("\n" if closed and lines else "")


def _place(lines: Sequence[str], hunk: Hunk, start: int, shift: int, number: int, change: FileChange) -> int:
    """Where the hunk's old lines stand: the place nearest to its line number or, without one, the only place."""
    for anchor in hunk.anchors:
        start = _after_anchor(lines, anchor, start, number, change)
    if not hunk.old:
        if hunk.line is not None and not hunk.anchors:
            # `-N,0` inserts after line N, and line 0 is the top
            return max(0, min(len(lines), hunk.line + shift))
        return start if hunk.anchors else len(lines)
    found = _matches(lines, hunk.old, start)
    if hunk.at_end:
        found = [at for at in found if at + len(hunk.old) == len(lines)]
    if not found:
        raise ToolError(
            f"Hunk {number} of the patch does not fit {change.path!r}: these lines are not there together: "
            f"{_quote(hunk.old)}. Nothing was changed. Read the file again and copy the lines exactly.",
            kind="bad_patch",
        )
    if hunk.line is not None:
        wanted = hunk.line - 1 + shift
        return min(found, key=lambda at: abs(at - wanted))
    if len(found) > 1 and not hunk.anchors:
        places = ", ".join(str(at + 1) for at in found[:8])
        raise ToolError(
            f"Hunk {number} of the patch fits {change.path!r} at {len(found)} places (lines {places}). Nothing was "
            "changed. Give more lines around it.",
            kind="bad_patch",
        )
    return found[0]


def _matches(lines: Sequence[str], old: Sequence[str], start: int) -> list[int]:
    """Exact places at or below `start`; if there is none, those that differ only in blanks at line ends."""
    last = len(lines) - len(old)
    found = [
        at for at in range(start, last + 1) if lines[at] == old[0] and list(lines[at : at + len(old)]) == list(old)
    ]
    if found:
        return found
    bare = [line.rstrip() for line in old]
    return [at for at in range(start, last + 1) if [line.rstrip() for line in lines[at : at + len(old)]] == bare]


def _after_anchor(lines: Sequence[str], anchor: str, start: int, number: int, change: FileChange) -> int:
    for at in range(start, len(lines)):
        if lines[at].strip() == anchor:
            return at + 1
    for at in range(start, len(lines)):
        if anchor in lines[at]:
            return at + 1
    raise ToolError(
        f"Hunk {number} of the patch looks for the line {anchor!r} in {change.path!r}, which is not there. Nothing was "
        "changed. Read the file again.",
        kind="bad_patch",
    )


def _quote(lines: Sequence[str]) -> str:
    shown = " | ".join(line.strip()[:80] for line in lines[:4])
    return repr(shown + (" | ..." if len(lines) > 4 else ""))
