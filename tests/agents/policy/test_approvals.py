"""Which calls need a person: names, globs, regexes, and what must not slip past them."""

from typing import Any

import pytest

from agents.errors import ConfigError
from agents.policy.approvals import LONGEST_TEXT, needed, rules_of


def asks(rules: list[dict[str, Any]], tool: str, **args: Any) -> bool:
    return needed(rules_of({"approvals": rules}), tool, args) is not None


PUSH = [{"tool": "run_command", "when": {"command": "git push*"}}]


def test_a_policy_without_rules_asks_for_nothing():
    assert rules_of({}) == ()
    assert needed((), "run_command", {"command": "rm -rf /"}) is None


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push origin main",
        "  git push",
        "git  push --force",
        "cd repo && git push",
        "make; git push",
        "true\ngit push",
        "(git push)",
        "echo $(git push)",
        "sleep 1 & git push",
    ],
)
def test_a_command_is_found_wherever_it_stands_in_the_line(command: str):
    assert asks(PUSH, "run_command", command=command)


@pytest.mark.parametrize("command", ["git status", "echo git pushes", "git pull"])
def test_other_commands_pass(command: str):
    assert not asks(PUSH, "run_command", command=command)


def test_a_rule_covers_only_its_tools():
    assert not asks(PUSH, "write_file", command="git push")
    assert asks([{"tool": "mcp__github__*"}], "mcp__github__delete_repo")
    assert not asks([{"tool": "mcp__github__*"}], "mcp__gitlab__delete_repo")
    assert asks([{"tool": "write_file"}], "write_file", path="a", content="b")


def test_every_pattern_of_a_rule_must_match():
    rules = [{"tool": "*", "when": {"path": "secrets/*", "content": {"regex": "key"}}}]
    assert asks(rules, "write_file", path="secrets/a", content="the\nkey")
    assert not asks(rules, "write_file", path="secrets/a", content="nothing")
    assert not asks(rules, "write_file", path="secrets/a")


def test_values_that_are_no_text_are_matched_as_json():
    assert asks([{"tool": "t", "when": {"force": "true"}}], "t", force=True)
    assert asks([{"tool": "t", "when": {"n": {"regex": "^[0-9]{3,}$"}}}], "t", n=1000)
    assert asks([{"tool": "t", "when": {"paths": "/etc/*"}}], "t", paths=["a", "/etc/passwd"])


def test_a_text_too_long_for_a_regex_needs_a_person():
    assert asks([{"tool": "t", "when": {"text": {"regex": "^never$"}}}], "t", text="x" * (LONGEST_TEXT + 1))


def test_the_first_rule_that_matches_tells_why():
    rules = rules_of({"approvals": [*PUSH, {"tool": "run_command", "why": "commands are watched today"}]})
    first, second = (
        needed(rules, "run_command", {"command": "git push"}),
        needed(rules, "run_command", {"command": "x"}),
    )
    assert first is not None and first.told() == "run_command with command like git push*"
    assert second is not None and second.told() == "commands are watched today"


@pytest.mark.parametrize(
    "approvals",
    [
        "run_command",
        [{"when": {}}],
        [{"tool": ""}],
        [{"tool": "a", "when": "x"}],
        [{"tool": "a", "when": {"b": 3}}],
        [{"tool": "a", "when": {"b": {"regex": "("}}}],
        [{"tool": "a", "when": {"b": {"glob": "x"}}}],
        [{"tool": "a", "unless": "x"}],
        ["run_command"],
        [{"tool": "a"}] * 201,
    ],
)
def test_rules_that_are_not_understood_are_refused(approvals: Any):
    with pytest.raises(ConfigError) as caught:
        rules_of({"approvals": approvals})
    assert caught.value.kind == "bad_approvals"
