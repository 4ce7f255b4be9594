"""Budgets: estimates near the truth for each kind of text, corrected by measured usage, and when a window is full."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agents.policy.budgets import Gauge, Room, history_tokens, message_tokens, result_chars, room, text_tokens

CODE = """    def take(self, turn: int) -> Outcome | None:
        \"\"\"Take one turn. None: the loop goes on.\"\"\"
        if self._used() >= limits.max_turns.value:
            return Exhausted(final=await self._model_call.summarise(CLOSING), final_by="model")
        return None
"""


@pytest.mark.parametrize(
    ("text", "counted"),
    # Counted with two current tokenizers, the larger number.
    [
        ("The quick brown fox jumps over the lazy dog, and then it goes home to sleep until the morning comes.", 22),
        (CODE, 67),
        ('{"run":"0193a1","seq":17,"kind":"call.completed","turn":4,"data":{"status":"ok"}}', 27),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 43),
        ("请先读取配置文件，然后运行全部测试，最后写一份简短的总结。", 27),
        ("Прочитай файл настроек и запусти все тесты, потом напиши короткий отчёт.", 32),
        ("drwxr-xr-x 12 root root 4096 Nov 30 03:40 site-packages", 23),
    ],
)
def test_an_estimate_is_within_a_third_of_what_tokenizers_count(text: str, counted: int) -> None:
    assert counted * 0.67 <= text_tokens(text) <= counted * 1.5


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens(one: str, other: str) -> None:
    assert max(text_tokens(one), text_tokens(other)) <= text_tokens(one + other) + 1
    assert text_tokens(one + other) <= text_tokens(one) + text_tokens(other)


@given(st.text())
@example("\t")
def test_an_estimate_is_bounded_by_the_bytes(text: str) -> None:
    assert len(text.encode("utf-8", "surrogatepass")) / 25 <= text_tokens(text) <= 2 * len(text) + 1


def test_half_a_character_does_not_stop_the_estimate() -> None:
    assert text_tokens("a\ud800b") >= 1


def test_calls_and_kept_provider_fields_count() -> None:
    bare = AssistantMessage(text="hi")
    called = AssistantMessage(text="hi", tool_calls=(ToolCall(call="c", wire_id="w", name="t", args="x" * 400),))
    assert message_tokens(called) > message_tokens(bare) + 50
    assert message_tokens(AssistantMessage(text="hi", opaque={"k": "v" * 400})) > message_tokens(bare) + 80
    assert history_tokens([bare, called]) == message_tokens(bare) + message_tokens(called)


def test_the_next_request_is_the_measured_one_plus_what_came_since() -> None:
    gauge = Gauge().measured(estimated=1000, prompt=1300)
    assert gauge.tokens(1000) == 1300
    assert gauge.tokens(1100) == 1430
    assert gauge.tokens(500) == 650  # smaller than what was measured: after a compression the ratio alone speaks


def test_the_ratio_follows_new_measurements() -> None:
    gauge = Gauge()
    for _ in range(6):
        gauge = gauge.measured(estimated=1000, prompt=2000)
    for _ in range(6):
        gauge = gauge.measured(estimated=1000, prompt=800)
    assert gauge.ratio == pytest.approx(0.8, abs=0.03)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.one_of(st.none(), st.integers(-5, 10**7)))))
def test_no_measurement_drives_the_ratio_out_of_bounds(seen: list[tuple[int, int | None]]) -> None:
    gauge = Gauge()
    for estimated, prompt in seen:
        gauge = gauge.measured(estimated, prompt)
        assert 0.25 <= gauge.ratio <= 4
        assert gauge.tokens(1000) >= 0


@pytest.mark.parametrize("prompt", [None, 0, -1])
def test_a_missing_count_teaches_nothing(prompt: int | None) -> None:
    assert Gauge().measured(1000, prompt) == Gauge()


def test_the_answer_has_room_below_the_threshold() -> None:
    for window in (4096, 16_384, 128_000, 200_000, 1_000_000):
        place = room(window, 8192)
        assert place.usable is not None and place.threshold is not None and place.target is not None
        assert place.threshold < place.usable < window
        assert place.target <= place.threshold / 2
        assert not place.too_full(place.threshold)
        assert place.too_full(place.threshold + 1)
    assert room(16_384).fullness(8192) == 0.5


def test_an_unknown_window_is_never_full_until_an_overflow_shows_it() -> None:
    unknown = room(None)
    assert not unknown.too_full(10**9)
    assert unknown.fullness(10) is None
    learned = unknown.overflowed(50_000)
    assert learned.window == 47_500
    assert learned.too_full(50_000)
    assert learned.overflowed(100_000) == learned
    assert Room(window=16_000).overflowed(20_000).window == 16_000


def test_results_are_read_in_smaller_pieces_where_the_window_is_small() -> None:
    assert result_chars(room(None)) == result_chars(room(200_000)) == 24_000
    assert result_chars(room(16_384)) < 8_000
    assert result_chars(room(2_000)) == 1_500


def test_a_user_message_and_a_result_of_the_same_text_weigh_nearly_the_same() -> None:
    said, result = UserMessage(text=CODE), ToolMessage(call="c", wire_id="w" * 9, name="t", text=CODE)
    assert abs(message_tokens(said) - message_tokens(result)) <= 3
