"""JSON that always works: strict and fast first, then lenient about what real servers and models produce."""

import json
from typing import Any

import orjson


class NotJSON(ValueError):
    pass


def loads(data: bytes) -> Any:
    """Parse one document. Raises NotJSON.

    orjson refuses lone surrogates in escapes, raw control characters inside strings, NaN and bytes that are no UTF-8;
    all of these come from real models, and none is a reason to throw an answer away. NaN and infinities become None.
    """
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise NotJSON(str(error)) from None


def dumps(value: Any) -> bytes:
    """Serialise, whatever the text holds: lone surrogates become U+FFFD, since no server accepts them."""
    try:
        return orjson.dumps(value)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def is_object(text: str) -> bool:
    """Whether the text is one complete JSON object."""
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        pass
    try:
        return isinstance(loads(text.encode("utf-8", "surrogatepass")), dict)
    except NotJSON:
        return False
