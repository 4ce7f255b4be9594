"""The output cap that a provider names when it refuses a request, in the ways that providers have of saying so."""

import pytest

from agents.policy.output_caps import told, window


@pytest.mark.parametrize(
    ("said", "cap"),
    [
        ("max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas ...", 16384),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5", 8192),
        ("max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000", 8000),
        ("`max_completion_tokens` must be less than or equal to `8192`, the maximum value for it", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 393216]", 393_216),
        ("Range of max_tokens should be [1, 8192]", 8192),
        ("max_tokens should not exceed 4,096", 4096),
        ("max_output_tokens: the supported range is from 1 (inclusive) to 8193 (exclusive)", 8192),
        ("max_tokens 的取值范围为 [1, 4096]", 4096),
        (
            "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens (568 in the "
            "messages, 6048 in the completion). Please reduce the length of the messages or completion.",
            5464,
        ),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease one of them", 9984),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 "
            "tokens and your request has 5000 input tokens (4096 > 8192 - 5000).",
            3176,
        ),
    ],
)
def test_the_cap_is_read_from_what_the_provider_says(said: str, cap: int) -> None:
    assert told(said) == cap


def test_a_prompt_that_fills_the_window_leaves_nothing_for_an_answer() -> None:
    said = (
        "This model's maximum context length is 4097 tokens. However, you requested 9000 tokens (8000 in the messages"
    )
    assert (told(said) or 0) < 0


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 140321 tokens.",
        "temperature must be between 0 and 2",
        "Requested 40000 tokens, limit 30000 per minute",
    ],
)
def test_what_is_about_something_else_names_no_cap(said: str) -> None:
    assert told(said) is None


def test_a_long_text_is_read_in_no_time() -> None:
    assert told("max_tokens " * 20_000) is None


def test_what_is_left_of_a_window_is_told_apart_from_the_limit_of_a_model():
    left = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease one of them"
    assert (told(left), window(left)) == (9984, 200_000)
    own = "max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000"
    assert (told(own), window(own)) == (8000, None)
