"""A policy given as NAME or FILE: a TOML file is the policy of this one run, under the file's name."""

import tomllib
from pathlib import Path
from typing import Any

from control.api.checks import check_policy
from control.api.errors import ApiError


def policy_of(given: str) -> str | dict[str, Any]:
    """A word is a name; what holds a slash or ends in .toml is read. Raises ApiError for a file that is no policy."""
    if not (given.endswith(".toml") or "/" in given):
        return given
    path = Path(given).expanduser()
    body = {"name": path.stem[:100], **_read(path)}
    check_policy(body)
    return body


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ApiError("no_policy_file", f"Cannot read {path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ApiError("bad_policy_file", f"{path} is no TOML: {error}.") from error
