"""A policy given as NAME or FILE: a TOML or JSON file is the policy of this one run, under the file's name."""

from pathlib import Path
from typing import Any

from agents.errors import ConfigError
from agents.policy.policies import read_policy
from control.api.checks import check_policy
from control.api.errors import ApiError


def policy_of(given: str) -> str | dict[str, Any]:
    """A word is a name; what holds a slash or ends in .toml or .json is read. Raises ApiError for what is no policy."""
    if not (given.endswith((".toml", ".json")) or "/" in given):
        return given
    path = Path(given).expanduser()
    body = _read(path)
    check_policy({name: value for name, value in body.items() if name != "name"})
    return {"name": path.stem[:100], **body}


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_policy(path.read_bytes(), is_json=path.suffix == ".json")
    except OSError as error:
        raise ApiError("no_policy_file", f"Cannot read {path}: {error.strerror or error}.") from error
    except ConfigError as error:
        raise ApiError("bad_policy_file", f"{path}: {error.message}") from error
