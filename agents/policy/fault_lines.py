"""Error samples as JSON lines: one line in, one line out."""

import json
from typing import Any

from agents.policy.faults import ErrorSample, classify


class NoSample(Exception):
    """The line cannot be judged; the text says why."""


def judged(number: int, line: bytes) -> tuple[str, bool]:
    """The answer to line `number`, and whether it held a sample. Never raises."""
    try:
        row = _row(line)
        sample = _sample(row)
    except NoSample as why:
        error = {"code": "bad_sample", "message": f"line {number}: {why}", "detail": {"line": number}}
        return json.dumps({"error": error}), False
    found = classify(sample)
    answer = {
        "id": row.get("id"),
        "reason": found.reason,
        "retryable": found.retryable,
        "should_compress": found.should_compress,
        "should_rotate_credential": found.should_rotate_credential,
        "should_fallback_model": found.should_fallback_model,
        "retry_after_s": found.retry_after_s,
        "evidence": found.evidence,
    }
    return json.dumps(answer), True


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoSample(f"no JSON ({error})") from None
    if not isinstance(row, dict):
        raise NoSample("a sample is a JSON object")
    return row


def _sample(row: dict[str, Any]) -> ErrorSample:
    status = row.get("http_status")
    if not (status is None or (isinstance(status, int) and not isinstance(status, bool))):
        raise NoSample("http_status must be a whole number or null")
    headers, context = row.get("headers") or {}, row.get("context") or {}
    if not isinstance(headers, dict) or not isinstance(context, dict):
        raise NoSample("headers and context must be objects")
    texts = {name: row.get(name) for name in ("provider", "body", "transport_exception")}
    for name, text in texts.items():
        if not (text is None or isinstance(text, str)):
            raise NoSample(f"{name} must be text or null")
    if status is None and not texts["body"] and not texts["transport_exception"]:
        raise NoSample("nothing to judge: give http_status, body or transport_exception")
    return ErrorSample(
        provider=texts["provider"] or "",
        http_status=status,
        headers={str(name): str(value) for name, value in headers.items()},
        body=texts["body"],
        transport_exception=texts["transport_exception"],
        context=context,
    )
