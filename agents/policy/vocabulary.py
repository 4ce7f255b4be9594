"""The word lists of the guard (`vocabulary.toml`), as sets and tuples."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))


def words(table: str, name: str) -> frozenset[str]:
    """A list of single words."""
    return frozenset(_tables()[table][name].split())


def phrases(table: str, name: str) -> tuple[str, ...]:
    """A list of phrases, one a line, looked for anywhere in a text in lower case."""
    return tuple(line.strip() for line in _tables()[table][name].splitlines() if line.strip())
