"""Token counts in one normal form, and prices."""

from decimal import Decimal

import pytest

from agents.messages import Usage
from agents.providers import catalog
from agents.providers.usage import anthropic_usage, money, openai_usage, plain


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(input=10, output=2)),
        ({"input_tokens": 10, "output_tokens": 2}, Usage(input=10, output=2)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(input=2, output=5, cache_read=8, reasoning=3),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
            Usage(input=6, output=1, cache_read=4),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5},
            },
            Usage(input=1, output=1, cache_read=4, cache_write=5),
        ),
        # The cache counted beside the prompt.
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 1,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 7,
            },
            Usage(input=3, output=1, cache_read=90, cache_write=7),
        ),
        # Reasoning counted beside the output.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(input=10, output=9, reasoning=7),
        ),
        ({"prompt_tokens": "10", "completion_tokens": 2.0, "prompt_tokens_details": None}, Usage(input=10, output=2)),
        ({"prompt_tokens": None, "completion_tokens": -4}, None),
        ({}, None),
    ],
)
def test_counts_come_to_one_form(raw: dict, usage: Usage | None) -> None:
    assert openai_usage(raw) == usage


def test_the_messages_api_counts_the_cache_beside_the_input() -> None:
    raw = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 2}
    assert anthropic_usage(raw) == Usage(input=3, output=2, cache_read=90, cache_write=7)
    assert anthropic_usage({}) is None


def test_money_is_written_without_exponent_or_noise() -> None:
    assert [plain(Decimal(text)) for text in ("1E-9", "1E+3", "0.10", "-0", "0")] == [
        "0.000000001",
        "1000",
        "0.1",
        "0",
        "0",
    ]
    assert money(float("nan")) is None


def test_a_price_belongs_to_a_model_at_a_host() -> None:
    dated = catalog.price("gpt-4o-2024-08-06", "https://api.openai.com/v1")
    assert dated is not None
    assert dated == catalog.price("gpt-4o", "https://api.openai.com/v1")
    assert dated.of(Usage(input=1000, output=100, cache_read=1000)) == "0.00475"
    assert catalog.price("gpt-4o", "http://127.0.0.1:8000/v1") is None
    assert catalog.price("gpt-4.1-mega", "https://api.openai.com/v1") is None


@pytest.mark.parametrize("value", [1e30, 10**40, "9" * 300])
def test_a_count_beyond_all_reason_counts_nothing(value: object) -> None:
    assert openai_usage({"prompt_tokens": value, "completion_tokens": 2}) == Usage(output=2)


@pytest.mark.parametrize("value", ["1e9999999", 1e300, "1e12"])
def test_a_cost_beyond_all_reason_is_none(value: object) -> None:
    assert money(value) is None


def test_a_cost_is_as_long_as_a_person_can_read() -> None:
    assert len(money(1e-300) or "") < 20
