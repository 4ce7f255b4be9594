"""What is wrong with an answer that came as one: refused, broken off, empty, over the window, or with a broken call."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.policy.fault_body import Said

_FILTERED = frozenset(
    {"content_filter", "content_filtered", "refusal", "safety", "prohibited_content", "blocklist", "recitation",
     "sensitive", "spii", "guardrail_intervened", "blocked", "image_safety", "language", "image_prohibited_content",
     "model_armor", "content_policy_violation", "risk", "high_risk", "image_recitation", "moderated"}
)  # fmt: skip
_BROKEN = {
    "error": "server_error", "network_error": "server_error", "engine_error": "server_error", "abort": "server_error",
    "aborted": "server_error", "insufficient_system_resource": "overloaded", "failed": "server_error",
    "model_context_window_exceeded": "context_overflow", "context_length_exceeded": "context_overflow",
    "error_toxic": "content_policy", "error_limit": "context_overflow", "context_window_exceeded": "context_overflow",
    "malformed_function_call": "malformed_response", "malformed_tool_use": "malformed_response",
    "malformed_model_output": "malformed_response", "unexpected_tool_call": "malformed_response",
    "too_many_tool_calls": "malformed_response", "missing_thought_signature": "invalid_tool_call_history",
    "cancelled": "server_error", "user_cancel": "server_error", "other": "malformed_response", "timeout": "timeout",
    "no_image": "malformed_response", "finish_reason_unspecified": "malformed_response", "rate_limit": "rate_limit",
}  # fmt: skip
_REASON_KEYS = ("finish_reason", "finishReason", "stop_reason", "native_finish_reason", "done_reason", "stopReason")
_TEXT_KEYS = ("content", "text", "reasoning", "reasoning_content", "thinking", "refusal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    reason: str
    evidence: str


@dataclass(slots=True, kw_only=True)
class _Seen:
    text: bool = False
    finish: str = ""
    prompt: int = 0
    output: int | None = None


def judge(said: Said, context: Mapping[str, Any]) -> Verdict | None:
    """The fault of an answer; None when there is no answer to judge."""
    seen = _Seen()
    for answer in said.answers:
        if (verdict := _state(answer)) is not None:
            return verdict
        _count(answer, seen)
        for part in _parts(answer):
            verdict = _finish(part, seen)
            # An error beside the answer says more than "error" as a finish reason.
            if verdict is not None and not (said.is_error and verdict.reason == "server_error"):
                return verdict
            if (verdict := _broken_call(part)) is not None:
                return verdict
            seen.text = seen.text or _has_text(part)
    if not said.answers:
        return None
    window = context.get("context_window")
    if isinstance(window, int) and window > 0 and seen.prompt >= window and not seen.text and not seen.output:
        return Verdict(reason="context_overflow", evidence=f"an empty answer to {seen.prompt} tokens, window {window}")
    if said.is_error or said.sentences:
        return None
    if said.is_stream and not seen.finish:
        return Verdict(reason="malformed_response", evidence="the stream ended without a finish reason")
    if not seen.text:
        return Verdict(reason="malformed_response", evidence="an answer without text and without calls")
    return Verdict(reason="malformed_response", evidence="an answer that could not be used")


def _state(answer: dict[str, Any]) -> Verdict | None:
    """Verdicts that a whole answer carries: blocked prompts, states of the responses interface."""
    feedback = answer.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return Verdict(reason="content_policy", evidence=f"the prompt was blocked: {feedback['blockReason']}")
    response = answer.get("response") if isinstance(answer.get("response"), dict) else answer
    if not isinstance(response, dict):
        return None
    status = str(response.get("status") or "").lower()
    kind = str(answer.get("type") or "").lower()
    if status in ("cancelled", "canceled") or kind in ("response.cancelled", "response.canceled"):
        return Verdict(reason="cancelled", evidence="the answer's state is cancelled")
    details = response.get("incomplete_details")
    if isinstance(details, dict) and str(details.get("reason") or "").lower() in _FILTERED:
        return Verdict(reason="content_policy", evidence=f"the answer is incomplete: {details['reason']}")
    if kind == "refusal" or kind.startswith("response.refusal"):
        return Verdict(reason="content_policy", evidence="the model refused")
    return None


def _parts(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Choices, candidates, or the answer itself, with the message or delta inside."""
    found = False
    for key in ("choices", "candidates"):
        for choice in answer.get(key) or () if isinstance(answer.get(key), list) else ():
            if isinstance(choice, dict):
                found = True
                yield choice
                for inner in ("message", "delta", "content"):
                    if isinstance(choice.get(inner), dict):
                        yield choice[inner]
    if found:
        return
    yield answer
    for key in ("delta", "message", "content_block", "response"):
        if isinstance(answer.get(key), dict):
            yield answer[key]


def _finish(part: dict[str, Any], seen: _Seen) -> Verdict | None:
    for key in _REASON_KEYS:
        value = part.get(key)
        if not isinstance(value, str) or not value:
            continue
        reason = value.lower()
        if reason in _FILTERED:
            return Verdict(reason="content_policy", evidence=f"{key} {value}")
        if reason in _BROKEN and not isinstance(part.get("error"), dict):
            return Verdict(reason=_BROKEN[reason], evidence=f"{key} {value}")
        seen.finish = seen.finish or reason
    if part.get("done") is True or part.get("type") in ("response.completed", "message_stop"):
        seen.finish = seen.finish or "stop"
    if isinstance(part.get("refusal"), str) and part["refusal"]:
        return Verdict(reason="content_policy", evidence="the model refused")
    return None


def _has_text(part: dict[str, Any]) -> bool:
    if any(isinstance(part.get(key), str) and part[key] for key in _TEXT_KEYS):
        return True
    if part.get("tool_calls") or part.get("parts") or part.get("function_call"):
        return True
    return isinstance(part.get("delta"), str) or bool(isinstance(part.get("content"), list) and part["content"])


def _broken_call(part: dict[str, Any]) -> Verdict | None:
    """A call of a whole message whose arguments are no JSON. Pieces of a stream have an index and are not judged."""
    calls = part.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or "index" in call:
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str) or not arguments.strip():
            continue
        try:
            json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return Verdict(reason="malformed_response", evidence="the arguments of a tool call are no JSON")
    return None


def _count(answer: dict[str, Any], seen: _Seen) -> None:
    boxes = [answer, answer.get("message"), answer.get("response")]
    for box in boxes:
        usage = box.get("usage") or box.get("usageMetadata") if isinstance(box, dict) else None
        if not isinstance(usage, dict):
            continue
        for key in ("prompt_tokens", "input_tokens", "promptTokenCount"):
            if isinstance(usage.get(key), int):
                seen.prompt = max(seen.prompt, usage[key])
        for key in ("completion_tokens", "output_tokens", "candidatesTokenCount"):
            if isinstance(usage.get(key), int):
                seen.output = usage[key]
