"""An exact replacement in a file's bytes: what is found, how often, and where."""

import codecs

from agents.errors import ToolError

_MAX_PLACES = 8


def replaced(content: bytes, old: bytes, new: bytes, *, every: bool, shown: str) -> tuple[bytes, int, int]:
    """The new content, how many places changed and the line of the first.

    Raises ToolError when the old text is not there exactly once. Where a file ends its lines in CRLF, text that came
    with LF is taken to mean CRLF: models never see the difference.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _replaced_in_utf16(content, old, new, every=every, shown=shown)
    if b"\r\n" in content and content.count(b"\r\n") == content.count(b"\n"):
        old, new = (text if b"\r" in text else text.replace(b"\n", b"\r\n") for text in (old, new))
    found = content.count(old)
    if not found:
        raise ToolError(
            f"The old text does not occur in {shown!r}; nothing was changed.{_hint(content, old)}", kind="not_found"
        )
    places = [] if every else _lines(content, old)
    if len(places) > 1:
        # Places that overlap are one for a replacement, and still more than one that could be meant.
        found = max(found, len(places))
        where = ", ".join(map(str, places[:_MAX_PLACES]))
        more = ", ..." if found > _MAX_PLACES else ""
        raise ToolError(
            f"The old text occurs {found} times in {shown!r}, at lines {where}{more}; nothing was changed. Give more "
            "of the text around the place you mean, or all=true to replace every one.",
            kind="not_unique",
        )
    return content.replace(old, new), found, line_of(content, content.find(old))


def line_of(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


def _lines(content: bytes, old: bytes) -> list[int]:
    """The lines of the first places, those inside of another place included; one more than are shown."""
    lines: list[int] = []
    at = content.find(old)
    while at >= 0 and len(lines) <= _MAX_PLACES:
        lines.append(line_of(content, at))
        at = content.find(old, at + 1)
    return lines


def _replaced_in_utf16(content: bytes, old: bytes, new: bytes, *, every: bool, shown: str) -> tuple[bytes, int, int]:
    """Bytes of UTF-8 put into such a file would shift all that follows; so it is edited as text."""
    codec = "utf-16-le" if content.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    try:
        text = content[2:].decode(codec).encode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shown!r} begins like a UTF-16 file but is none; nothing was changed. Use run_command.", kind="binary"
        ) from error
    text, found, line = replaced(text, old, new, every=every, shown=shown)
    return content[:2] + text.decode().encode(codec), found, line


def _hint(content: bytes, old: bytes) -> str:
    """What comes near: the same text but for blanks, or the line where the first line of the old text stands."""
    if b"[redacted:" in old:
        return " It holds a redaction marker; the file holds the real value, which was hidden from you. Edit around it."
    wanted = [line.strip() for line in old.splitlines() if line.strip()]
    if not wanted:
        return " Read the file again and copy the text exactly."
    have = [line.strip() for line in content.splitlines()]
    solid = [(number, line) for number, line in enumerate(have, start=1) if line]
    texts = [line for _, line in solid]
    for at in range(len(texts) - len(wanted) + 1):
        if texts[at] == wanted[0] and texts[at : at + len(wanted)] == wanted:
            return f" At line {solid[at][0]} stands the same text with other blanks or line ends; copy it exactly."
    near = [number for number, line in solid if line == wanted[0]][:_MAX_PLACES]
    if near:
        return f" Its first line stands at line {', '.join(map(str, near))}, but what follows differs. Read it again."
    return " Read the file again: it may have changed, or be another one."
