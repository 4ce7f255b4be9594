"""Policies as data: what ships is sound, and what is wrong is named where it stands."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from agents import __main__ as program
from agents.errors import ConfigError
from agents.policy.identity_rules import check_expression, identified
from agents.policy.policies import NAMES, RULES, policy_from, read_policy, shipped


@pytest.mark.parametrize("name", NAMES)
def test_shipped_policies_are_sound(name: str) -> None:
    assert policy_from(shipped(name), name).note


def test_default_gives_numbers_for_every_rule() -> None:
    assert set(policy_from(shipped("default"), "default").rules) == RULES


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"ruels": {}}, "ruels"),
        ({"rules": {"repeat_eror": {"block": 1}}}, "rules.repeat_eror"),
        ({"rules": {"repeat_error": {"block": 5, "stop": 3}}}, "rules.repeat_error.stop"),
        ({"rules": {"repeat_error": {"block": -1}}}, "rules.repeat_error.block"),
        ({"rules": {"repeat_error": {"mode": "kill"}}}, "rules.repeat_error.mode"),
        ({"rules": {"repeat_error": 3}}, "rules.repeat_error"),
        ({"fuses": {"max_steps": 0}}, "fuses.max_steps"),
        ({"fuses": {"max_steps": "many"}}, "fuses.max_steps"),
        ({"fuses": {"max_steps": True}}, "fuses.max_steps"),
        ({"fuses": {"max_step": 3}}, "max_step"),
        ({"ladder": {"block": 3, "stop": 2}}, "ladder.stop"),
        ({"ladder": {"identity": {"t": 5}}}, "ladder.identity.t"),
        ({"identity": {"t": "url | uppper"}}, "identity.t"),
        ({"tools": {"t": {"pol": True}}}, "tools.t"),
        ({"shadow": "yes"}, "shadow"),
        ({"escalate": {"model": 4}}, "escalate.model"),
    ],
)
def test_mistake_is_named_by_its_place(body: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policy_from(body, "mine")
    assert caught.value.kind == "bad_policy"
    assert place in caught.value.message


def test_file_that_is_no_policy_is_told() -> None:
    for content, is_json in ((b"= 3", False), (b"{", True), (b"[]", True), (b"\xff", False)):
        with pytest.raises(ConfigError):
            read_policy(content, is_json=is_json)


def test_expressions_take_what_they_name() -> None:
    args = {"url": "https://Api.x.io:8/a?b=1", "user": {"id": "A-17"}}
    assert identified("url | host", args) == "api.x.io:8"
    assert identified("user.id | digits + url | head 5", args) == "17\0https"
    assert identified(("user.id",), args) == identified(("user.id",), {"user": {"id": "a-17"}})
    assert identified("nothing.there", args) == ""
    assert check_expression("url | host + user.id") is None
    assert check_expression("url | hots") is not None


def test_judge_command_answers_line_by_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    failing = {"tool": "t", "args": {}, "result": "Error: no", "is_error": True}
    lines = [
        json.dumps({"id": "a", "calls": [{**failing, "batch": n} for n in range(3)]}),
        "{broken",
        json.dumps({"id": "b", "calls": "none"}),
        "",
    ]
    file = tmp_path / "mine.toml"
    file.write_text("[rules]\nrepeat_error = { block = 1 }\n")

    class Input:
        buffer = io.BytesIO("\n".join(lines).encode())

    monkeypatch.setattr("sys.stdin", Input)
    assert program.main(["judge", "--policy", str(file)]) == 2
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["executed"] == [1]
    assert first["verdicts"][0] | {"call": 2, "rung": "block", "mode": "refuse"} == first["verdicts"][0]
    assert set(first["verdicts"][0]) == {"call", "rung", "mode", "rule", "fingerprint", "count", "explanation"}
    assert second["error"]["code"] == third["error"]["code"] == "bad_sequence"


def test_judge_command_knows_policies_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["judge", "--policy", "nonesuch"]) == 2
    assert "strict, ladder, default, off" in capsys.readouterr().err
