"""Reads patches in the two forms that models write: unified diff and `*** Begin Patch`. Pure: text in, changes out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.errors import ToolError


@dataclass(slots=True)
class Hunk:
    """Consecutive lines of a file: `old` as they are, `new` as they shall be. `line` is where the patch says they are.

    `anchors` are lines that stand somewhere above, in this order. `no_newline` tells that the new last line has none.
    """

    line: int | None = None
    anchors: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    no_newline: bool = False
    at_end: bool = False


@dataclass(slots=True)
class FileChange:
    """`path` None: the file is made; `target` None: it is removed; both and different: it is moved."""

    path: str | None
    target: str | None
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for path in (self.path, self.target) if path is not None))


def parse(text: str) -> list[FileChange]:
    """The changes of a patch, in its order. Raises ToolError (kind `bad_patch`) that names the line at fault."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = next((n for n, line in enumerate(lines) if line.strip() == "*** Begin Patch"), None)
    changes = _begin_form(lines, start + 1) if start is not None else _unified(lines)
    if not changes:
        raise _bad("holds no change. Send a unified diff (---, +++, @@) or *** Begin Patch ... *** End Patch")
    return changes


def _bad(what: str, line: int | None = None) -> ToolError:
    where = f" at its line {line}" if line is not None else ""
    return ToolError(f"The patch{where} {what}. Nothing was changed.", kind="bad_patch")


# --- unified diff ------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"@@+ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _unified(lines: list[str]) -> list[FileChange]:
    changes: list[FileChange] = []
    head = _Head()
    at, renamed_from = 0, None
    while at < len(lines):
        line = lines[at]
        if line.startswith("diff --git "):
            head.close(changes, at)
            head = _Head(line[11:], len(changes))
        elif line.startswith("rename from "):
            renamed_from = _unquoted(line[12:])
        elif line.startswith("rename to ") and renamed_from is not None:
            changes.append(FileChange(renamed_from, _unquoted(line[10:])))
            renamed_from = None
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise _bad("changes a binary file, which only git can do; use run_command", at + 1)
        elif _next_file(lines, at):
            old, new = _name(line[4:], "a/"), _name(lines[at + 1][4:], "b/")
            if old is None and new is None:
                raise _bad("names no file", at + 1)
            if not (changes and changes[-1].paths == tuple(p for p in (old, new) if p) and not changes[-1].hunks):
                changes.append(FileChange(old, new))
            at += 1
        elif line.startswith("@@"):
            if not changes:
                raise _bad("has a hunk before any file name (--- and +++)", at + 1)
            at, hunk = _hunk(lines, at)
            changes[-1].hunks.append(hunk)
            continue
        else:
            head.note(line)
        at += 1
    head.close(changes, at)
    return changes


class _Head:
    """What `diff --git` and the lines below it say. For an empty file, a mode or a copy there is nothing else."""

    def __init__(self, names: str = "", before: int = 0) -> None:
        self._names = names
        self._before = before
        self._what: str | None = None

    def note(self, line: str) -> None:
        told = ("new file mode", "deleted file mode", "new mode", "copy to")
        if self._names and (what := next((one for one in told if line.startswith(one + " ")), None)):
            self._what = what

    def close(self, changes: list[FileChange], at: int) -> None:
        """Make the change that only the head tells. Raises ToolError for one that cannot be made here."""
        if self._what is None or (len(changes) > self._before and self._what != "copy to"):
            return
        name = _name_of_both(self._names)
        if self._what == "copy to":
            raise _bad("copies a file; use cp through run_command, then patch the copy", at)
        if self._what == "new mode":
            raise _bad("only changes the mode of a file; use chmod through run_command", at)
        if name is None:
            raise _bad(f"names no file: {self._names[:80]!r}", at)
        changes.append(FileChange(None, name) if self._what == "new file mode" else FileChange(name, None))


def _name_of_both(names: str) -> str | None:
    """The one name in `a/NAME b/NAME`, which may hold blanks."""
    half = len(names) // 2
    old, new = _unquoted(names[:half]), _unquoted(names[half + 1 :])
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old[2:], new[2:]
    return old if old == new and old else None


def _name(text: str, prefix: str) -> str | None:
    name = _unquoted(text.split("\t")[0].strip())
    if name == "/dev/null":
        return None
    return name.removeprefix(prefix)


_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _unquoted(text: str) -> str:
    """A name as git writes it: in quotes, with escapes, if it holds anything but plain letters."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text.strip('"')
    raw = text[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(_meant, raw).decode("utf-8", "surrogateescape")


def _meant(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPES.get(code, code)


def _hunk(lines: list[str], at: int) -> tuple[int, Hunk]:
    """One hunk from its `@@` line to the next header, or to the first other line once its counts are reached."""
    header = _HEADER.match(lines[at])
    hunk = Hunk(line=int(header[1]) if header else None)
    olds = int(header[2] or 1) if header else None
    news = int(header[4] or 1) if header else None
    at += 1
    while at < len(lines):
        line = lines[at]
        full = olds is not None and news is not None and len(hunk.old) >= olds and len(hunk.new) >= news
        if line.startswith("\\"):
            hunk.no_newline = lines[at - 1][:1] in ("+", " ")
        elif line.startswith(("@@", "diff --git ", "*** ")) or _next_file(lines, at):
            break
        elif full and (line[:1] not in ("+", "-", " ") or line.rstrip() == "--"):
            break  # models miscount: only what cannot belong to the hunk ends it
        elif line == "" and at == len(lines) - 1:
            break
        elif line[:1] in ("", " "):
            hunk.old.append(line[1:])
            hunk.new.append(line[1:])
        elif line[0] == "-":
            hunk.old.append(line[1:])
        elif line[0] == "+":
            hunk.new.append(line[1:])
        else:
            raise _bad(f"starts neither with a blank, '-' nor '+': {line[:60]!r}", at + 1)
        at += 1
    return at, hunk


def _next_file(lines: list[str], at: int) -> bool:
    """Whether a file begins here. Inside a hunk, `---` and `+++` may be lines that begin with two dashes or pluses."""
    pair = lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")
    return pair and (at + 2 >= len(lines) or not lines[at + 2].strip() or lines[at + 2].startswith(("@@", "---")))


# --- *** Begin Patch ---------------------------------------------------------------------------------------------

_VERBS = ("*** Add File: ", "*** Delete File: ", "*** Update File: ")


def _begin_form(lines: list[str], at: int) -> list[FileChange]:
    changes: list[FileChange] = []
    for number, line in _until_end(lines, at):
        verb = next((verb for verb in _VERBS if line.startswith(verb)), None)
        if verb is not None:
            name = line[len(verb) :].strip()
            old = None if verb.startswith("*** Add") else name
            changes.append(FileChange(old, None if verb.startswith("*** Delete") else name))
            if old is None:
                changes[-1].hunks.append(Hunk())
        elif not changes:
            if line.strip():
                raise _bad("must begin with *** Add File:, *** Update File: or *** Delete File:", number)
        elif line.startswith("*** Move to: "):
            changes[-1].target = line[13:].strip()
        else:
            _body_line(changes[-1], line, number)
    return changes


def _until_end(lines: list[str], at: int) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines[at:], start=at + 1):
        if line.strip() == "*** End Patch":
            return
        if number == len(lines) and line == "":
            return
        yield number, line


def _body_line(change: FileChange, line: str, number: int) -> None:
    if line.strip() == "*** End of File":
        if change.hunks:
            change.hunks[-1].at_end = True
        return
    if line.startswith("@@"):
        anchor = line[2:].strip().removesuffix("@@").strip()
        last = change.hunks[-1] if change.hunks else None
        if last is None or last.old or last.new:
            change.hunks.append(last := Hunk())
        if anchor:
            last.anchors.append(anchor)
        return
    if not change.hunks:
        change.hunks.append(Hunk())
    hunk = change.hunks[-1]
    if change.target is None:
        raise _bad("gives lines for a file that it deletes", number)
    if line[:1] == "+":
        hunk.new.append(line[1:])
    elif line[:1] == "-":
        hunk.old.append(line[1:])
    elif line[:1] in ("", " "):
        hunk.old.append(line[1:])
        hunk.new.append(line[1:])
    else:
        raise _bad(f"starts neither with a blank, '-' nor '+': {line[:60]!r}", number)
