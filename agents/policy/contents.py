"""What an edit does to a file: its content as a checksum, and whether only remarks and blanks change."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agents.policy.asked import Edited
from agents.policy.canonical import digest

_OLD, _NEW = ("oldstr", "oldstring", "old", "search"), ("newstr", "newstring", "new", "replace")
_CONTENTS = ("content", "contents", "filetext", "text", "newcontent", "data", "body")
_CHANGED = re.compile(r"^([+-])(?![+-]{2})(.*)$", re.M)
_REMARK = re.compile(r"(?m)^\s*(?:#|//|--|;|\*|/\*|<!--|\"\"\").*$|\s+(?:#|//)\s.*$")
_BLANKS = re.compile(r"\s+")


def bare(text: str) -> str:
    """Code without remarks and blanks: what is left equal, did not change what it does."""
    return _BLANKS.sub("", _REMARK.sub("", text[:40_000]))


def is_cosmetic(pairs: Mapping[str, Any]) -> bool:
    old = next((pairs[key] for key in _OLD if isinstance(pairs.get(key), str)), None)
    new = next((pairs[key] for key in _NEW if isinstance(pairs.get(key), str)), None)
    if old is not None and new is not None:
        return bare(old) == bare(new)
    patch = pairs.get("patch", pairs.get("diff"))
    if isinstance(patch, str):
        lines = _CHANGED.findall(patch[:20_000])
        gone = "\n".join(text for sign, text in lines if sign == "-")
        come = "\n".join(text for sign, text in lines if sign == "+")
        return bool(lines) and bare(gone) == bare(come)
    return False


def content_after(pairs: Mapping[str, Any]) -> tuple[str, ...]:
    """The checksums by which a file would be known after a write that holds its whole content; without remarks last."""
    if any(key in pairs for key in _OLD):
        return ()
    found = next((pairs[key] for key in _CONTENTS if isinstance(pairs.get(key), str)), None)
    return () if found is None else (content_sum(found), exact_sum(found), digest(bare(found)))


def content_sum(text: str) -> str:
    """A file's content as a checksum; blanks at the ends of lines do not count."""
    return digest("\n".join(line.rstrip() for line in text.split("\n")).rstrip())


def exact_sum(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def edited(content: str | None) -> Edited:
    """What a file holds, from its content (None: it was removed)."""
    text = content if content is not None else "\0gone"
    return Edited(exact=exact_sum(text), loose=content_sum(text), code=digest(bare(text)))
