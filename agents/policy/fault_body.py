"""Unwraps what an error answer holds: bodies in bodies, JSON in strings, Python reprs, event streams, AWS frames."""

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any

MAX_NODES = 400
# What a diagnosis needs at most; the patterns that search it are not to meet a page.
MAX_CHARS = 6000
MAX_DEPTH = 12
_MAX_TEXT = 64 * 1024
_BIG = 1e15

# Keys whose value is a sentence, a code, a number of a status; names as they are after `_plain`.
_SENTENCES = frozenset(
    {"message", "msg", "errormsg", "errormessage", "errortext", "statusmsg", "statusmessage", "detail", "details",
     "title", "description", "errordescription", "error", "errors", "raw", "failedreason", "failurereason",
     "fault", "faultstring", "text", "hint", "info", "cause", "originalmessage", "innererror", "explanation"}
)  # fmt: skip
_MESSAGES = frozenset(
    {"", "message", "msg", "errormsg", "errormessage", "errortext", "statusmsg", "statusmessage", "detail", "error",
     "errordescription"}
)  # fmt: skip
_CODES = frozenset(
    {"code", "type", "status", "statuscode", "errorcode", "errortype", "reason", "err", "subcode", "exceptiontype",
     "exception", "errortypename", "quotaid", "limitsource", "httpcode", "httpstatus", "errcode", "name", "kind",
     "blockreason", "retcode", "category", "errorname", "sqlstate", "errno", "ret"}
)  # fmt: skip
_STATUSES = frozenset({"code", "status", "statuscode", "httpcode", "httpstatus", "errorcode", "originalstatuscode"})
# Delays as data; the value says the unit.
DELAYS = {
    "retrydelay": 1.0, "resetsinseconds": 1.0, "resetinseconds": 1.0, "estimatedtime": 1.0, "retryafter": 1.0,
    "retryafterseconds": 1.0, "retryafters": 1.0, "retryaftersec": 1.0, "retryafterms": 0.001, "retryin": 1.0,
    "retryinseconds": 1.0, "waitseconds": 1.0, "secondsuntilreset": 1.0, "retryaftermilliseconds": 0.001,
    "resetafter": 1.0, "resetafterseconds": 1.0, "cooldownseconds": 1.0, "waittime": 1.0, "timeremaining": 1.0,
    "waitms": 0.001, "resetsinms": 0.001, "resetafterms": 0.001, "suggestedretryafter": 1.0, "resetseconds": 1.0,
    "quotaresetdelay": 1.0, "retryafterinseconds": 1.0,
}  # fmt: skip
# Moments as data: epoch seconds or milliseconds, or a date with its zone.
MOMENTS = frozenset(
    {"resetsat", "resetat", "quotaresettimestamp", "resettime", "retryat", "availableat", "nextresettime", "reset"}
)
# What was asked or answered is no evidence about the failure.
_CONTENT = frozenset(
    {"messages", "input", "prompt", "request", "usage", "usagemetadata", "safetyratings", "ctx", "url"}
)
_FINE = frozenset({"success", "ok", "none", "null", "succeeded", "undefined"})
_REPR = re.compile(r"""[\[{]\s*['"]""")
_BYTES_REPR = re.compile(r"""b(['"])[\[{]""")


@dataclass(slots=True, kw_only=True)
class Said:
    """What the body says, innermost first where that matters.

    `answers` are parts of a model's answer (chunks, messages, candidates); `is_error` tells whether anything in the
    body calls itself an error; `events` whether it was a stream.
    """

    sentences: list[str] = field(default_factory=list)
    message: str = ""
    codes: list[str] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    moments: list[Any] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    params: list[str] = field(default_factory=list)
    quotas: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    is_error: bool = False
    is_wrapped: bool = False
    is_json: bool = False
    is_stream: bool = False
    is_done: bool = False
    nodes: int = 0

    @property
    def text(self) -> str:
        return " | ".join(self.sentences)[:MAX_CHARS]


def read(body: str) -> Said:
    """Everything that `body` says; never raises."""
    said = Said()
    text = body[:_MAX_TEXT].strip().removeprefix("\ufeff").strip()
    if not text:
        return said
    value = _json(text)
    if value is not None:
        said.is_json = True
        _take(said, value)
    elif _is_events(text):
        _take_events(said, text)
    elif (lines := _json_lines(text)) is not None:
        said.is_json = said.is_stream = True
        for line in lines:
            _take(said, line)
    elif not text.startswith("<"):
        _sentence(said, text, 0)
    return said


def _take(said: Said, value: Any) -> None:
    """One document: an answer is set aside, unless it holds an error too."""
    if isinstance(value, dict) and _is_answer(value):
        said.answers.append(value)
        value = {key: part for key, part in value.items() if _plain(key) not in _ANSWER_KEYS}
    _walk(said, value, 0, "")


_ANSWER_KEYS = frozenset(
    {"choices", "candidates", "content", "output", "delta", "contentblock", "id", "object", "model", "role", "created",
     "createdat", "stopreason", "done", "donereason", "doneReason", "contentfilter", "text"}
)  # fmt: skip


def _is_answer(value: dict[str, Any]) -> bool:
    if any(key in value for key in ("choices", "candidates", "promptFeedback", "stop_reason", "stopReason", "done")):
        return True
    kind = value.get("type")
    if isinstance(kind, str) and kind.startswith(("response.", "content_block", "message_")):
        return True
    return value.get("object") == "response" or (isinstance(value.get("message"), dict) and "model" in value)


def _walk(said: Said, value: Any, depth: int, key: str) -> None:
    said.nodes += 1
    if said.nodes > MAX_NODES or depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        _walk_object(said, value, depth)
    elif isinstance(value, list):
        for item in value[:20]:
            _walk(said, item, depth + 1, key)
    elif isinstance(value, str) and value.strip():
        if key in _SENTENCES or not key:
            _sentence(said, value, depth, is_message=key in _MESSAGES)
        elif key in _CODES:
            _code(said, value, key, depth)


def _walk_object(said: Said, value: dict[str, Any], depth: int) -> None:
    """Deeper objects are walked first, so that what is said innermost comes first."""
    plain = [(_plain(key), part) for key, part in value.items()]
    for key, part in plain:
        if key in ("error", "errors", "exception") and part:
            said.is_error = True
        if key == "headers" and isinstance(part, dict):
            said.headers.update({str(name).lower(): str(text) for name, text in part.items()})
        elif isinstance(part, dict | list) and key not in _CONTENT:
            _walk(said, part, depth + 1, key)
    for key, part in plain:
        if isinstance(part, str) and key not in _CONTENT:
            _walk_text(said, key, part, depth)
        elif isinstance(part, int | float) and not isinstance(part, bool):
            _walk_number(said, key, part)


def _walk_text(said: Said, key: str, part: str, depth: int) -> None:
    if key in DELAYS or key in MOMENTS:
        (said.delays.append(seconds) if (seconds := _delay(key, part)) is not None else said.moments.append(part))
    if key == "param":
        said.params.append(part)
    elif key in ("providername", "provider", "upstreamprovider"):
        said.hosts.append(part)
    elif key in ("quotaid", "quotametric", "limitname"):
        said.quotas.append(part)
    _walk(said, part, depth + 1, key)


def _walk_number(said: Said, key: str, part: float) -> None:
    if not -_BIG < part < _BIG:
        return
    if key in DELAYS:
        said.delays.append(part * DELAYS[key])
    elif key in MOMENTS:
        said.moments.append(part)
    elif key in _CODES and part:
        if key in _STATUSES and 400 <= part < 600:
            said.statuses.append(int(part))
        said.codes.append(str(int(part)) if part == int(part) else str(part))


def _delay(key: str, text: str) -> float | None:
    unit = DELAYS.get(key)
    if unit is None:
        return None
    number = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*s?\s*", text)
    return float(number[1]) * unit if number else None


def _code(said: Said, value: str, key: str, depth: int) -> None:
    value = value.strip()
    if key in _STATUSES and value.isdecimal() and 400 <= int(value[:9]) < 600:
        said.statuses.append(int(value[:9]))
    if " " in value or (len(value) > 60 and value[0] in "[{"):
        _sentence(said, value, depth)
    elif len(value) <= 200:
        said.codes.append(value)


def _sentence(said: Said, value: str, depth: int, *, is_message: bool = True) -> None:
    """A sentence, and before it whatever document is inside of it."""
    inner, rest = _inside(value)
    if inner is not None and depth < MAX_DEPTH:
        said.is_wrapped = said.is_wrapped or depth > 0 or bool(rest)
        _walk(said, inner, depth + 1, "")
        value = rest
    if value.strip().lower() in _FINE:
        return
    if value and value not in said.sentences and len(said.sentences) < 30:
        said.sentences.append(value)
        if is_message and not said.message:
            said.message = value.strip()


def _inside(text: str) -> tuple[Any, str]:
    """A document written inside a text, and the text around it; (None, text) when there is none."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"') and (value := _json(stripped)) is not None:
        return value, ""
    if "{" not in text:
        return None, text
    match = _BYTES_REPR.search(text)
    if match is not None and (found := _bytes_repr(text, match.start(), match[1])) is not None:
        return found
    for match in list(_REPR.finditer(text))[:4]:
        start = match.start()
        try:
            value, length = _DECODER.raw_decode(text[start:])
            return value, f"{text[:start]} {text[start + length :]}".strip()
        except (ValueError, RecursionError):
            pass
        if (found := _python_repr(text, start)) is not None:
            return found
    return None, text


def _bytes_repr(text: str, start: int, quote: str) -> tuple[Any, str] | None:
    end = text.rfind(quote)
    if end <= start + 2:
        return None
    try:
        value = _json(ast.literal_eval(text[start : end + 1]).decode("utf-8", "replace"))
    except (ValueError, SyntaxError, AttributeError, MemoryError, RecursionError):
        return None
    return None if value is None else (value, f"{text[:start]} {text[end + 1 :]}".strip())


def _python_repr(text: str, start: int) -> tuple[Any, str] | None:
    """`{'error': {'message': …}}` as Python clients put it into their messages."""
    end = text.rfind("}" if text[start] == "{" else "]")
    if end <= start or end - start > 8000:
        return None
    try:
        value = ast.literal_eval(text[start : end + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return (value, f"{text[:start]} {text[end + 1 :]}".strip()) if isinstance(value, dict | list) else None


def _is_events(text: str) -> bool:
    return text.startswith(("data:", "event:", ":", "id:", "retry:")) or "\ndata:" in text[:4096]


def _take_events(said: Said, text: str) -> None:
    said.is_stream = True
    name = ""
    for line in text.splitlines():
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data = line[5:].strip()
            if data == "[DONE]":
                said.is_done = True
            elif (value := _json(data)) is not None:
                said.is_json = True
                _take_event(said, name, value)
            elif data:
                said.is_error = said.is_error or name in _ERROR_EVENTS
                _sentence(said, data, 0)
        elif not line.strip():
            name = ""


_ERROR_EVENTS = frozenset({"error", "response.failed", "response.error", "exception", "fail", "failed"})


def _take_event(said: Said, name: str, value: Any) -> None:
    kind = str(value.get("type") or "") if isinstance(value, dict) else ""
    if name in _ERROR_EVENTS or kind in _ERROR_EVENTS:
        said.is_error = True
        _walk(said, value, 0, "")
    else:
        _take(said, value)


def _json_lines(text: str) -> list[Any] | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not lines[0].startswith("{"):
        return None
    values = [_json(line) for line in lines[:500]]
    return None if any(value is None for value in values[:-1]) else [value for value in values if value is not None]


_DECODER = json.JSONDecoder(strict=False)


def _json(text: str) -> Any:
    """None for what is no JSON. `null` is as good as nothing."""
    if text[:1] not in '{["':
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _plain(key: object) -> str:
    """`error_code`, `errorCode`, `error-code`, `:exception-type` all read the same."""
    return str(key).replace("_", "").replace("-", "").replace(":", "").lower()
