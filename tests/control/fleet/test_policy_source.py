"""Policies as TOML: what is written reads back the same, what was typed is kept, and errors name their line."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import ConfigError
from agents.policy.policies import NAMES, shipped
from control.fleet import policies, policy_source
from control.fleet.models import Policy

_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
_PLAIN = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | _TEXTS
_VALUES = st.recursive(_PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3))


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value if item is not None] if isinstance(value, list) else value


@given(st.dictionaries(_TEXTS, _VALUES, max_size=5))
def test_what_is_written_reads_back_the_same(body: dict[str, Any]) -> None:
    assert tomllib.loads(policy_source.written(body)) == without_none(body)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_policy_shows_its_remarks_and_is_written_readably(name: str) -> None:
    row = Policy(name=name, body=shipped(name))
    assert policy_source.source_of(row).startswith("# ")
    row.name = "copy"
    assert tomllib.loads(policy_source.source_of(row)) == shipped(name)
    assert policies.check(row.body) is None


def test_rules_are_written_a_line_each() -> None:
    body = {"note": "n", "rules": {"pending": {"observe": 1, "mode": "stub"}}, "identity": {"a b": ["x"]}}
    lines = policy_source.written(body).splitlines()
    assert 'pending = { observe = 1, mode = "stub" }' in lines and lines[0] == 'note = "n"'


SOURCE = """note = "n"
[fuses]
max_steps = 12
[rules]
pending = { observe = 3, block = 1 }
"two words" = 1
[[approvals]]
tool = "x"
"""


@pytest.mark.parametrize(
    ("was", "now", "line"),
    [
        ("max_steps = 12", "max_steps = -1", 3),
        ("max_steps = 12", "max_step = 12", 3),
        ('"two words" = 1\n', "", 5),
        ("block = 1", "blok = 1", 5),
        ('note = "n"', "nota = 1", 1),
        ("[fuses]", "[fuse", 2),
    ],
)
def test_an_error_names_its_line(was: str, now: str, line: int) -> None:
    text = SOURCE.replace(was, now)
    with pytest.raises(ConfigError) as caught:
        policies.check(policy_source.read(text))
    assert policy_source.line_of(text, caught.value) == line


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('on_quota = "fial"', "on_quota is one of wait, fail"),
        ("credentials = 2020-01-01", "something else"),
        ("compression_model = 3", "compression_model is the name"),
        ('note = "a\\u0000"', "NUL"),
        ("[fuses]\nmax_cost = inf", "something else"),
        ("[rules]\nnonsense = { block = 1 }", "rules.nonsense is no rule"),
    ],
)
def test_what_no_run_could_follow_is_told(text: str, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policies.check(policy_source.read(text))
    assert word in caught.value.message


def test_tables_in_a_list_stay_in_their_section() -> None:
    body = {"a": {"b": [{"c": [False]}], "d": 1}, "": {"": [{"": [False]}]}}
    assert tomllib.loads(policy_source.written(body)) == body
