"""An exact replacement in a file's bytes: what is found, how often, and where."""

from agents.errors import ToolError

_MAX_PLACES = 8


def replaced(content: bytes, old: bytes, new: bytes, *, every: bool, shown: str) -> tuple[bytes, int, int]:
    """The new content, how many places changed and the line of the first.

    Raises ToolError when the old text is not there exactly once. Where a file ends its lines in CRLF, text that came
    with LF is taken to mean CRLF: models never see the difference.
    """
    if b"\r\n" in content and content.count(b"\r\n") == content.count(b"\n"):
        old, new = (text if b"\r" in text else text.replace(b"\n", b"\r\n") for text in (old, new))
    found = content.count(old)
    if not found:
        raise ToolError(
            f"The old text does not occur in {shown!r}; nothing was changed.{_hint(content, old)}", kind="not_found"
        )
    if found > 1 and not every:
        where = ", ".join(map(str, _lines(content, old)[:_MAX_PLACES]))
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
    lines, at = [], content.find(old)
    while at >= 0:
        lines.append(line_of(content, at))
        at = content.find(old, at + len(old))
    return lines


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
