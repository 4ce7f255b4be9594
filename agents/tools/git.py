"""Runs git for the workspaces: without hooks, prompts, signing or the user's own name, and with errors that tell."""

import os
import subprocess
from collections.abc import Mapping

from agents.errors import AgentError
from agents.tools.processes import clean_environment

AUTHOR = "Pilothouse"
EMAIL = "pilothouse@localhost"
_TIMEOUT_S = 300.0
# Hooks and monitors of a repository are programs; none of them is ours to start.
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    # Only operators name repositories, and a container's user often is not the owner of a mounted one.
    "safe.directory=*",
)


class GitFailed(AgentError):
    """git ended with an error; `message` holds what it said."""

    def __init__(self, command: str, said: str) -> None:
        super().__init__("git_failed", f"git {command} failed: {said}")
        self.said = said


def git(directory: str, *arguments: str, extra: Mapping[str, str] | None = None) -> str:
    """The standard output of one git command in this directory, without the last line end. Raises GitFailed."""
    options = [part for option in _OPTIONS for part in ("-c", option)]
    try:
        done = subprocess.run(
            ["git", *options, "-C", directory, *arguments],
            env={**_environment(directory), **(extra or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitFailed(arguments[0], "git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(arguments[0], f"no end within {_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise GitFailed(arguments[0], said[-2000:] or f"exit code {done.returncode}")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def asks(directory: str, *arguments: str, extra: Mapping[str, str] | None = None) -> str | None:
    """The same, with None where git says no."""
    try:
        return git(directory, *arguments, extra=extra)
    except GitFailed:
        return None


def _environment(directory: str) -> dict[str, str]:
    who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _WHO}
    # A workspace whose own .git was deleted must not be taken for a part of a repository further up.
    ceiling = os.path.dirname(os.path.realpath(directory))
    return {**clean_environment({}), **who, "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": ceiling}


_WHO = (("NAME", AUTHOR), ("EMAIL", EMAIL))
