"""What a failed attempt left on the wire, judged: order of evidence, kinds of failure, permissions."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import ClassifiedError, WireEvidence
from agents.policy.fault_actions import REASONS
from agents.policy.faults import ErrorSample, classify, known, sample_of

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


def judged(status: int | None, body: Any, provider: str = "", **more: Any) -> ClassifiedError:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return classify(ErrorSample(provider=provider, http_status=status, body=text, **more))


def said(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "reason", "sentence"),
    [
        (429, "", "rate_limit", ""),
        (401, '{"error": {"message": "no key"}}', "auth", "no key"),
        (429, '{"error": {"code": "insufficient_quota", "message": "pay"}}', "billing", "pay"),
        (400, '{"error": {"code": "context_length_exceeded", "message": "too long"}}', "context_overflow", "too long"),
        (404, '{"error": "model qwen not found"}', "model_not_found", "model qwen not found"),
        (404, "", "unknown", ""),
        (200, '{"error": {"code": 502, "message": "busy"}}', "server_error", "busy"),
        (200, 'data: {"error": {"code": 429, "message": "slow down"}}\n\n', "rate_limit", "slow down"),
        (200, "event: error\ndata: overheated\n\n", "server_error", "overheated"),
        (200, "<html>", "malformed_response", ""),
        (500, '[{"error": {"status": "UNAVAILABLE", "message": "later"}}]', "overloaded", "later"),
        (599, "", "timeout", ""),
        (400, '{"error":' * 3000, "format_error", ""),
        (418, "{}", "unknown", ""),
    ],
)
def test_codes_come_before_the_status(status: int, body: str, reason: str, sentence: str) -> None:
    found = classify(sample_of(WireEvidence(status=status, body=body)))
    assert found.reason == reason
    assert found.said == sentence or not sentence


@pytest.mark.parametrize(
    ("transport", "reason"),
    [
        ("ConnectError", "connection"),
        ("RemoteProtocolError", "connection"),
        ("ReadTimeout", "timeout"),
        ("ConnectTimeout", "timeout"),
        ("CancelledError", "cancelled"),
    ],
)
def test_a_transport_exception_decides_by_its_class(transport: str, reason: str) -> None:
    assert classify(sample_of(WireEvidence(status=200, transport=transport, body=""))).reason == reason


def test_our_own_abort_wins_over_whatever_the_last_answer_was() -> None:
    found = judged(429, "", headers={"retry-after": "30"}, transport_exception="CancelledError")
    assert (found.reason, found.retryable, found.retry_after_s) == ("cancelled", False, None)


def test_a_certificate_that_does_not_verify_is_not_tried_again() -> None:
    found = judged(None, "certificate verify failed: self signed", transport_exception="ConnectError")
    assert (found.reason, found.retryable, found.should_fallback_model) == ("connection", False, True)


INNER = {"error": {"message": "Your wallet balance is exhausted, please top up", "type": "invalid_request_error"}}


@pytest.mark.parametrize(
    "body",
    [
        INNER,
        [INNER],
        {"message": json.dumps(INNER)},
        {"error": {"message": f"Error code: 400 - {INNER!r}", "type": "None"}},
        {"detail": f"upstream said {json.dumps(INNER).encode()!r}"},
        {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(INNER)}}},
        {"type": "error", "status": 429, "body": INNER},
        f"event: error\ndata: {json.dumps(INNER)}\n\n",
        json.dumps("Your wallet balance is exhausted, please top up"),
        {"Response": {"Error": {"Code": "Failed", "Message": INNER["error"]["message"]}}},
    ],
)
def test_the_innermost_error_is_found_in_any_wrapping(body: Any) -> None:
    assert judged(429, body).reason == "billing"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": "balance is empty"}}, "billing"),
        ("", "billing"),
        (said("You have used up your 5-hour window, try again in 12 minutes"), "rate_limit"),
        (said("Weekly usage limit reached, please try again later"), "rate_limit"),
        (said("Credits are on hold for other requests in flight"), "rate_limit"),
        (said("Your monthly spending limit has been reached"), "billing"),
    ],
)
def test_402_is_money_unless_it_passes_by_itself(body: Any, reason: str) -> None:
    assert judged(402, body).reason == reason


def test_the_same_sentence_about_quota_means_another_thing_at_another_provider() -> None:
    body = {"error": {"message": "You exceeded your current quota, please check your plan and billing details."}}
    assert judged(429, body, "openai").reason == "billing"
    assert judged(429, body, "dashscope").reason == "rate_limit"
    body["error"]["status"] = "RESOURCE_EXHAUSTED"
    assert judged(429, body, "google-gemini").reason == "rate_limit"
    body["error"]["message"] += " Quota exceeded for metric: requests, limit: 0"
    assert judged(429, body, "google-gemini").reason == "billing"


def test_an_advert_in_a_rate_limit_is_no_diagnosis() -> None:
    text = (
        "Rate limit reached, 3 requests per minute. Upgrade your plan or add a payment method to increase your limits."
    )
    assert judged(429, said(text)).reason == "rate_limit"


@pytest.mark.parametrize("status", [400, 403, 413, 422, 500, 200])
@pytest.mark.parametrize(
    "text",
    [
        "The conversation exceeds the context window of this model",
        "Der Prompt ist zu lang: Kontextlänge überschritten",
        "输入内容超过模型的最大上下文长度，请缩短后重试",
        "プロンプトが長すぎます",
        "프롬프트가 최대 컨텍스트 길이를 초과했습니다",
        "Слишком длинный запрос: превышен размер контекста",
    ],
)
def test_a_prompt_that_does_not_fit_is_an_overflow_under_any_status_in_any_language(status: int, text: str) -> None:
    found = judged(status, {"error": {"message": text}})
    assert (found.reason, found.should_compress, found.retryable) == ("context_overflow", True, True)


def test_too_many_tokens_per_minute_is_a_rate_and_no_overflow() -> None:
    assert judged(429, said("Too many tokens processed per minute, please wait")).reason == "rate_limit"


def test_a_reservation_that_alone_fills_the_window_is_a_parameter_to_correct() -> None:
    text = "input length and max_tokens exceed context limit: {} + 190000 > 200000, decrease input length or max_tokens"
    assert judged(400, said(text.format(12000))).reason == "format_error"
    assert judged(400, said(text.format(150000))).reason == "context_overflow"
    assert judged(400, said("max_tokens must be at most 8192")).reason == "format_error"


def test_one_request_over_a_minutes_allowance_is_made_smaller_and_never_waited_for() -> None:
    text = "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000. Try again in 30s."
    found = judged(429, said(text, "rate_limit_exceeded"))
    assert (found.reason, found.should_compress, found.should_rotate_credential) == ("payload_too_large", True, False)
    assert found.retry_after_s is None


def test_the_limit_of_a_pool_that_is_not_ours_rests_no_credential() -> None:
    ours = judged(429, said("Rate limit reached"))
    pool = judged(429, said("some/model is temporarily rate-limited upstream. Please retry shortly"))
    assert ours.should_rotate_credential and not pool.should_rotate_credential
    assert ours.reason == pool.reason == "rate_limit"


def test_only_a_full_window_turns_an_error_without_a_word_into_an_overflow() -> None:
    full = {"input_tokens": 95_000, "context_window": 100_000}
    half = {"input_tokens": 50_000, "context_window": 100_000}
    assert judged(400, "", context=full).reason == "context_overflow"
    assert judged(400, said("Bad Request"), context=full).reason == "context_overflow"
    assert judged(400, "", context=half).reason == "format_error"
    assert judged(413, "", context=half).reason == "payload_too_large"
    assert judged(502, "", context=full).reason == "server_error"
    assert judged(None, "", transport_exception="ReadTimeout", context=full).reason == "timeout"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "malformed_response"),
        (": keep-alive\n\n: keep-alive\n\n", "malformed_response"),
        ('data: {"choices":[{"delta":{"content":"hal"}}]}\n\n', "malformed_response"),
        ('data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}\n\ndata: [DONE]\n\n', "content_policy"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "sensitive"}]}, "content_policy"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "content_policy"),
        ({"id": "resp_1", "object": "response", "status": "cancelled", "output": []}, "cancelled"),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": None}, "billing"),
    ],
)
def test_status_200_is_no_proof_of_success(body: Any, reason: str) -> None:
    assert judged(200, body).reason == reason


def test_evidence_names_code_provider_and_status() -> None:
    found = judged(429, {"error": {"code": "insufficient_balance", "message": "no"}}, "openai")
    assert found.evidence == "matched code insufficient_balance at openai, over status 429"


def test_a_known_reason_has_the_permissions_of_that_reason() -> None:
    found = known("content_policy", ErrorSample(), "the model refused")
    assert (found.reason, found.retryable, found.should_fallback_model) == ("content_policy", False, True)


KEYS = [
    "error", "message", "code", "status", "type", "choices", "details", "headers", "usage", "raw", "detail", "param",
    "candidates", "delta", "finish_reason", "retryDelay", "resets_at", "tool_calls", "response",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BODY = st.one_of(
    st.none(), st.text(max_size=200), st.binary(max_size=200), JSON.map(json.dumps),
    JSON.map(lambda value: "data: " + json.dumps(value) + "\n\n"), JSON.map(lambda value: f"Error: {value!r}"),
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "date", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after-ms"]),
    st.text(max_size=30) | st.sampled_from(["0", "5", "-1", "6m0s", "Sat, 31 Jan 2026 12:01:30 GMT", "1e400", "inf"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.none() | st.integers(-5, 700),
    BODY,
    HEADERS,
    st.none() | st.sampled_from(["ReadError", "CancelledError", "WriteTimeout", ""]),
    st.dictionaries(st.sampled_from(["input_tokens", "context_window"]), JSON),
    st.none() | st.just(NOW),
)
def test_nothing_makes_it_raise(
    status: int | None, body: Any, headers: dict[str, str], name: str | None, context: dict[str, Any], now: Any
) -> None:
    sample = ErrorSample(
        provider="zhipu", http_status=status, headers=headers, body=body, transport_exception=name, context=context
    )
    found = classify(sample, now)
    assert found.reason in REASONS
    assert found == classify(sample, now)
    assert found.retry_after_s is None or found.retry_after_s > 0
    assert not found.should_compress or found.reason in ("context_overflow", "payload_too_large")
