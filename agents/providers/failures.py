"""Finds an error inside an answer that came with status 200, whatever its shape."""

from typing import Any

# What a well-formed chunk consists of. Only a chunk with more than this, or without choices, is looked at closely.
PLAIN_KEYS = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "provider", "type"}
)
_ERROR_KEYS = (
    "error", "errors", "error_code", "error_msg", "error_message", "error_type", "errorText", "errorCode", "exception",
)  # fmt: skip
_ERROR_TYPES = ("error", "exception", "failed")
# Finish reasons that end no answer but tell why there is none.
BROKEN_OFF = {
    "error": None, "network_error": "server_error", "engine_error": "server_error", "abort": "server_error",
    "aborted": "server_error", "cancelled": "server_error", "insufficient_system_resource": "overloaded",
    "model_context_window_exceeded": "context_overflow", "context_length_exceeded": "context_overflow",
    "malformed_function_call": "malformed_response",
}  # fmt: skip
FILTERED = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "prohibited_content", "blocklist", "recitation",
     "sensitive", "spii", "guardrail_intervened", "blocked"}
)  # fmt: skip
CUT = frozenset(
    {"length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length", "token_limit",
     "max_tokens_reached"}
)  # fmt: skip


def is_error(chunk: dict[str, Any]) -> bool:
    """Whether the chunk is an error, or holds one beside its choices."""
    if any(_says_something(chunk.get(key), strict=bool(chunk.get("choices"))) for key in _ERROR_KEYS):
        return True
    box = chunk.get("base_resp")
    if isinstance(box, dict) and box.get("status_code") not in (None, 0, 200, "0"):
        return True
    kind = str(chunk.get("type") or "").lower()
    if kind.endswith(_ERROR_TYPES) or chunk.get("object") == "error" or chunk.get(":message-type") == "exception":
        return True
    if isinstance(chunk.get("promptFeedback"), dict) and chunk["promptFeedback"].get("blockReason"):
        return True
    if chunk.get("choices") or chunk.get("usage"):
        return False
    # Neither an answer nor a count of tokens: something that speaks, and perhaps names a code, is a complaint.
    if chunk.get("success") is False or _number(chunk.get("status")) >= 400 or _number(chunk.get("status_code")) >= 400:
        return True
    return bool(chunk.get("detail")) or any(
        isinstance(chunk.get(key), str) and chunk[key] for key in ("message", "msg")
    )


def names_error(event: str) -> bool:
    """Whether the name of an event says that it is an error, whatever its data is."""
    return bool(event) and event.lower().endswith(_ERROR_TYPES)


def _says_something(value: Any, *, strict: bool) -> bool:
    """Null, false and empty text are no error; beside choices, neither is an object whose fields are all empty."""
    if value is None or value is False or value == "" or value == 0 or value == []:
        return False
    if isinstance(value, dict) and strict:
        return any(value.values())
    return True


def _number(value: Any) -> float:
    if isinstance(value, str) and value.isdecimal():
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
