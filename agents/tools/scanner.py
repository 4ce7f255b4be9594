"""Searches files for a pattern, as a program: a bad pattern can run for ever, and only a process can be ended.

`python -I -S -W ignore scanner.py TOP START PATTERN` prints `path:line: text` with paths relative to TOP, then one
line in brackets. It needs nothing but the standard library and starts in about 20 ms.
"""

import os
import re
import sys
from collections.abc import Iterator

MAX_MATCHES = 200
MAX_FILE = 4 * 1024 * 1024
_WIDTH = 240
_SNIFF = 8192
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache"})


def main(top: str, start: str, pattern: str) -> int:
    try:
        wanted = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        _say(f"The pattern is no valid regular expression: {error}. Escape special characters with a backslash.")
        return 2
    matches, files, notes = 0, 0, _Notes()
    for path in _files(start, notes):
        text = _text(path, notes)
        if text is None:
            continue
        files += 1
        for number, line in enumerate(text.split("\n"), start=1):
            hit = wanted.search(line)
            if hit is None:
                continue
            if matches == MAX_MATCHES:
                _say(f"[more than {MAX_MATCHES} matches; narrow the pattern or give a path{notes.text()}]")
                return 0
            matches += 1
            _say(f"{os.path.relpath(path, top)}:{number}: {_around(line.rstrip(chr(13)), hit.start())}")
    _say(f"[{matches or 'no'} match{'' if matches == 1 else 'es'} in {files} files{notes.text()}]")
    return 0


def _say(line: str) -> None:
    """At once: when the search is ended in the middle, what it found until then counts."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class _Notes:
    """What was left out, so that `no matches` never claims too much."""

    def __init__(self) -> None:
        self.large = self.binary = self.unreadable = 0
        self.skipped: set[str] = set()

    def text(self) -> str:
        parts = [f"{count} {what} files" for count, what in self._counts() if count]
        parts += sorted(f"{name}/" for name in self.skipped)
        return "; not searched: " + ", ".join(parts) if parts else ""

    def _counts(self) -> tuple[tuple[int, str], ...]:
        return ((self.large, "large"), (self.binary, "binary"), (self.unreadable, "unreadable"))


def _files(start: str, notes: _Notes) -> Iterator[str]:
    """Regular files below the start, in a fixed order; links are not followed, so there are no circles."""
    if os.path.isfile(start):
        yield start
        return

    def unreadable(_: OSError) -> None:
        notes.unreadable += 1

    for directory, names, files in os.walk(start, onerror=unreadable):
        notes.skipped.update(name for name in names if name in _SKIPPED and name != ".git")
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        for name in sorted(files):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _text(path: str, notes: _Notes) -> str | None:
    try:
        if os.path.getsize(path) > MAX_FILE:
            notes.large += 1
            return None
        with open(path, "rb") as file:
            content = file.read(MAX_FILE)
    except OSError:
        notes.unreadable += 1
        return None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if b"\x00" in content[:_SNIFF]:
        notes.binary += 1
        return None
    return content.decode("utf-8", "replace")


def _around(line: str, at: int) -> str:
    if len(line) <= _WIDTH:
        return line
    start = max(0, min(at - _WIDTH // 3, len(line) - _WIDTH))
    before, after = "..." if start else "", "..." if start + _WIDTH < len(line) else ""
    return f"{before}{line[start : start + _WIDTH]}{after}"


if __name__ == "__main__":
    # File names may hold any bytes; they go out as they came in.
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    sys.exit(main(*sys.argv[1:4]))
