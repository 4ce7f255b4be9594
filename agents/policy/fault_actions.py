"""What each reason permits: retry, compress, rotate the credential, fall back to another model; and the exceptions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Permissions, not an order of work. `waits` tells whether a delay that the provider named means anything."""

    retryable: bool = False
    compress: bool = False
    rotate: bool = False
    fallback: bool = False
    waits: bool = False


_BY_REASON = {
    "rate_limit": Actions(retryable=True, rotate=True, fallback=True, waits=True),
    "billing": Actions(rotate=True, fallback=True),
    "auth": Actions(rotate=True, fallback=True),
    "permission": Actions(fallback=True),
    "context_overflow": Actions(retryable=True, compress=True),
    "payload_too_large": Actions(retryable=True, compress=True),
    "format_error": Actions(fallback=True),
    "invalid_tool_call_history": Actions(retryable=True),
    "model_not_found": Actions(fallback=True),
    "content_policy": Actions(fallback=True),
    "overloaded": Actions(retryable=True, fallback=True, waits=True),
    "server_error": Actions(retryable=True, waits=True),
    "timeout": Actions(retryable=True, waits=True),
    "connection": Actions(retryable=True),
    "malformed_response": Actions(retryable=True),
    "cancelled": Actions(),
    "unknown": Actions(retryable=True, waits=True),
}
REASONS = frozenset(_BY_REASON)

# Finer kinds of a reason that permit something else.
_BY_KIND = {
    # The sibling keys have the same cap; a model with a larger allowance may do.
    ("payload_too_large", "single_request"): Actions(retryable=True, compress=True, fallback=True),
    # The pool is not ours: another key of ours meets the same limit.
    ("rate_limit", "shared"): Actions(retryable=True, fallback=True, waits=True),
    ("billing", "shared"): Actions(fallback=True),
    ("auth", "shared"): Actions(fallback=True),
    # A lasting condition of the server: not enough memory for the model.
    ("server_error", "permanent"): Actions(fallback=True),
    # One of several upstreams of a gateway failed; another model has another.
    ("server_error", "gateway"): Actions(retryable=True, fallback=True, waits=True),
    # The address may be wrong, not the moment.
    ("unknown", "not_found"): Actions(retryable=True, fallback=True),
    # A certificate does not get better by itself.
    ("connection", "certificate"): Actions(fallback=True),
    # A page in place of an answer: the address may be wrong.
    ("malformed_response", "page"): Actions(retryable=True, fallback=True),
}


def actions(reason: str, kind: str = "") -> Actions:
    return _BY_KIND.get((reason, kind)) or _BY_REASON[reason]
