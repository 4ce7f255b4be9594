"""Short words for what a call does: the one argument that says most, and what a batch's plan means."""

from typing import Any

import orjson

from control.plain import first_line

# The first of these that a call has is what a reader looks for.
TELLING = ("command", "path", "pattern", "query", "question", "task", "url", "name", "file", "text")


def arguments(raw: str | None) -> tuple[str, str]:
    """A call's arguments as one line and, laid out, as a whole. Text that is no JSON stays as it was given."""
    if not raw:
        return "", ""
    try:
        value: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return first_line(raw), raw[:4_000]
    if not isinstance(value, dict):
        return first_line(raw), raw[:4_000]
    whole = "\n".join(f"{name}: {_shown(item)}" for name, item in value.items())[:4_000]
    for name in TELLING:
        if isinstance(value.get(name), str) and value[name]:
            return first_line(value[name]), whole
    return first_line(" ".join(f"{name}={_shown(item)}" for name, item in value.items())), whole


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def lanes(groups: list[list[str]]) -> str:
    """`3 side by side, then 1 alone`."""
    words = [f"{len(group)} side by side" if len(group) > 1 else "1 alone" for group in groups]
    merged: list[str] = []
    alone = 0
    for word in [*words, ""]:
        if word == "1 alone":
            alone += 1
            continue
        if alone:
            merged.append("1 alone" if alone == 1 else f"{alone} one after another")
            alone = 0
        if word:
            merged.append(word)
    return ", then ".join(merged)
