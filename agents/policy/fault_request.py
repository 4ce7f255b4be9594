"""Rules about the request: what the text says about its size, its history, its form and its content."""

import re

from agents.policy.fault_heard import Found, Heard

# A substantial part of the window: below it, a reservation for output alone fills the window.
SUBSTANTIAL = 0.4
_LONG_CONTEXT = 200_000

_REQUESTED = re.compile(
    r"limit[:\s]*([0-9][0-9,]{0,14})[^0-9]{1,60}?(?:requested|used [0-9,]+, requested)[:\s]*([0-9][0-9,]{0,14})", re.I
)


def single_request(heard: Heard) -> Found | None:
    match = _REQUESTED.search(heard.raw)
    if match and not (heard.status in (413, 429) or heard.has("rate", "window")):
        match = None
    if match and _whole(match[2]) > _whole(match[1]):
        return Found(
            reason="payload_too_large",
            kind="single_request",
            evidence=f"one request of {match[2]} over the limit of {match[1]}",
        )
    if match and "used" in heard.text and _whole(match[2]) <= _whole(match[1]):
        return None
    return heard.says("single_request", "payload_too_large", "single_request") if heard.has("single_request") else None


def bad_call(heard: Heard) -> Found | None:
    return heard.says("bad_call", "malformed_response") if heard.has("bad_call") and not heard.has("history") else None


_TOOL_PATH = re.compile(
    r"^\s*(?:invalid '?)?(?:tools|functions)\b[.\[]|\btools[.\[]\d|input_schema|inputschema|"
    r"function_declarations|functiondeclarations",
    re.IGNORECASE,
)


def about_tools(heard: Heard) -> Found | None:
    """A complaint that points into the tool list is about the request's form, never about the history."""
    points = any(param.startswith(("tools", "functions")) for param in heard.params) or _TOOL_PATH.search(heard.raw)
    if points and not heard.has("money", "credential"):
        return Found(reason="format_error", evidence="the complaint points into the tool list")
    return None


def image(heard: Heard) -> Found | None:
    return heard.says("image", "payload_too_large", "image") if heard.has("image") else None


def long_context(heard: Heard) -> Found | None:
    """A plan without the long window: shrink below the standard one, unless the input is known to be small."""
    if "long context" not in heard.text or (
        not heard.has("money", "permission", "overflow", "quota", "rate") and "required" not in heard.text
    ):
        return None
    tokens = heard.context.get("input_tokens")
    if isinstance(tokens, int) and tokens < _LONG_CONTEXT * 0.9:
        return Found(reason="permission", evidence=f"the plan has no long context, and {tokens} tokens need none")
    return Found(reason="context_overflow", evidence="the plan has no long context")


def history(heard: Heard) -> Found | None:
    if not heard.has("history") or heard.status in (429, 503, 529):
        return None
    return heard.says("history", "invalid_tool_call_history")


def policy(heard: Heard) -> Found | None:
    """Not where it is a policy of an organisation or a network that forbids."""
    denied = heard.families.get("permission", "")
    if not heard.has("policy") or (
        "polic" in denied and not any(word in denied for word in ("content", "usage", "use p"))
    ):
        return None
    return heard.says("policy", "content_policy")


_RATE_WORDS = (
    " per minute",
    " per day",
    " per hour",
    " please wait",
    " processed",
    " per second",
    " time frame",
    " tpm",
    " tpd",
)


_TOOK = re.compile(r"\b(?:took|takes|taking|taken|waited|waiting|running|ran)\b")


def output_cap(heard: Heard) -> Found | None:
    """An output cap or range; the same words beside a window are an overflow unless the input is small."""
    if not heard.has("output_cap"):
        return None
    if heard.has("overflow"):
        return None
    return heard.says("output_cap", "format_error", "output_cap")


def overflow(heard: Heard) -> Found | None:
    if not heard.has("overflow"):
        return None
    if heard.status == 402 or (" too" in heard.families["overflow"] and _TOOK.search(heard.families["overflow"])):
        return None
    if any(word in heard.text for word in _RATE_WORDS) or (
        heard.status == 429 and heard.has("rate", "later", "window")
    ):
        return None
    if heard.has("output_cap") or any(
        word in heard.text
        for word in (" max tokens", " completion", " output tokens", " max new tokens", " max output")
    ):
        share = _input_share(heard)
        if share is not None and share < SUBSTANTIAL:
            return Found(
                reason="format_error", kind="output_cap", evidence="the reservation for output alone fills the window"
            )
        if share is None and heard.has("output_cap") and "window" not in heard.text and "context" not in heard.text:
            return heard.says("output_cap", "format_error", "output_cap")
    return heard.says("overflow", "context_overflow")


_INPUT_NUMBER = re.compile(
    r"(?<![0-9])([0-9][0-9,]{0,14})\s*(?:`?inputs?`?\s*tokens|input tokens|prompt tokens|of text input|"
    r"tokens? of (?:text )?input|"
    r"(?:tokens? )?(?:in|of|from) (?:the |your )?(?:messages|prompt|input))|"
    r"(?:input tokens?|prompt|prompt tokens|messages resulted in|prompt contains(?: at least)?|input has|input is|"
    r"passed|n_prompt_tokens)[^0-9]{0,20}([0-9][0-9,]{0,14})|([0-9][0-9,]{0,14})\s*\+\s*[0-9]",
    re.IGNORECASE,
)
_WINDOW_NUMBER = re.compile(
    r"(?:context (?:length|window|size|limit)|maximum|limit|window|n_ctx|<=|>|max)[^0-9]{0,30}([0-9][0-9,]{2,})", re.I
)


# "input + output > window"
_SUM = re.compile(r"(?<![0-9])([0-9][0-9,]{0,14})\s*\+\s*[0-9][0-9,]{0,14}\s*>\s*([0-9][0-9,]{0,14})")


def _input_share(heard: Heard) -> float | None:
    """How much of the window the input takes, as far as numbers in the text or our own count tell."""
    if (sum_ := _SUM.search(heard.raw)) is not None:
        return _whole(sum_[1]) / max(_whole(sum_[2]), 1)
    found = _INPUT_NUMBER.search(heard.raw)
    tokens = _whole(next(group for group in found.groups() if group)) if found else heard.context.get("input_tokens")
    window_in_text = _WINDOW_NUMBER.search(heard.raw)
    window = _whole(window_in_text[1]) if window_in_text else heard.context.get("context_window")
    if not isinstance(tokens, int) or not isinstance(window, int) or window <= 0:
        return None
    return tokens / window


def payload(heard: Heard) -> Found | None:
    return heard.says("payload", "payload_too_large") if heard.has("payload") and heard.status != 429 else None


def _whole(text: str) -> int:
    return int(text.replace(",", "")[:12] or 0)
