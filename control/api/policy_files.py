"""A policy given as NAME or FILE: a TOML file becomes the policy that is named like it."""

import tomllib
from pathlib import Path
from typing import Any

from django.db import transaction

from control.accounts.roles import Actor
from control.api.acts import Act, write
from control.api.checks import check_policy
from control.api.errors import ApiError
from control.api.fleet import save
from control.fleet.models import Policy


def policy_name(given: str, actor: Actor) -> str:
    """The name to start with. A word is a name; what looks like a path or ends in .toml is read and saved first."""
    if not (given.endswith(".toml") or "/" in given):
        return given
    path = Path(given).expanduser()
    body = _read(path)
    check_policy(body)
    with transaction.atomic():
        done = save(Policy, path.stem, {"body": body}, by=actor.name)
        write(actor, Act(action="write_policy", target=f"policy:{path.stem}"), done)
    return path.stem


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ApiError("no_policy_file", f"Cannot read {path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ApiError("bad_policy_file", f"{path} is no TOML: {error}.") from error
