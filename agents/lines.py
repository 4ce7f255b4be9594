"""Judging what was recorded elsewhere: one JSON line in, one JSON line out."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from agents.errors import ConfigError
from agents.policy.approvals import rules_of
from agents.policy.fault_lines import judged
from agents.policy.policies import NAMES, Policy, policy_from, read_policy, shipped
from agents.policy.recorded import judged_line
from agents.policy.switches import check_switches

# The answer to a numbered line, and whether the line held what it should.
Answerer = Callable[[int, bytes], tuple[str, bool]]


def answerer(options: argparse.Namespace) -> Answerer:
    """What answers the lines of `classify` (provider errors) or `judge` (recorded calls). Raises ConfigError."""
    if options.command == "classify":
        return judged
    policy = policy_named(options.policy)
    return lambda number, line: judged_line(number, line, policy)


def answer_all(lines: Iterable[bytes], write: Callable[[str], None], answer: Answerer) -> bool:
    """Answer each line; whether all held what they should."""
    sound = True
    for number, line in enumerate(lines, 1):
        if line.strip():
            text, read = answer(number, line)
            sound = sound and read
            write(text)
    return sound


def policy_named(name: str) -> Policy:
    """A shipped policy, or one from a TOML or JSON file. Raises ConfigError."""
    body, known_as = policy_body(name)
    policy = policy_from(body, known_as)
    rules_of(body)
    check_switches(body)
    return policy


def policy_body(name: str) -> tuple[Mapping[str, Any], str]:
    """The same as data, with the name that it goes by."""
    if name in NAMES:
        return shipped(name), name
    file = Path(name)
    if not file.is_file():
        raise ConfigError("unknown_policy", f"There is no policy {name!r}: give {', '.join(NAMES)} or a file.")
    return read_policy(file.read_bytes(), is_json=file.suffix == ".json"), file.stem
