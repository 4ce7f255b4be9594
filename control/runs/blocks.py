"""Blocks on new starts: which open block a start falls under."""

from collections.abc import Iterable, Mapping
from typing import Any

from control.runs.models import Block

# A new run has neither status nor id yet, so these parts of a filter say nothing about it.
_NOT_YET = ("status", "all")


def blocking(*, agent: str, task: str, project: str, labels: Mapping[str, str]) -> Block | None:
    """The oldest open block whose filter this start would match; None if there is none."""
    for block in Block.objects.filter(lifted_at=None).order_by("created_at", "id"):
        if _matches(block.filter, agent=agent, task=task, project=project, labels=labels):
            return block
    return None


def _matches(given: Mapping[str, Any], *, agent: str, task: str, project: str, labels: Mapping[str, str]) -> bool:
    """Fields are joined by *and*; an empty filter matches every start; one by ids matches none."""
    wanted = {name: value for name, value in given.items() if value and name not in _NOT_YET}
    if "ids" in wanted:
        return False
    if (agents := wanted.get("agent")) and agent not in _words(agents):
        return False
    if (named := wanted.get("project")) and project != named:
        return False
    if (label := wanted.get("label")) and not _labelled(str(label), labels):
        return False
    if text := wanted.get("q"):
        word = str(text).strip().casefold()
        return word in task.casefold() or word in agent.casefold()
    return True


def _words(given: Any) -> Iterable[str]:
    return [word.strip() for word in given.split(",")] if isinstance(given, str) else given


def _labelled(label: str, labels: Mapping[str, str]) -> bool:
    """`key=value`, `key:value`, or a bare `key` for any value."""
    for mark in ("=", ":"):
        key, found, value = label.partition(mark)
        if found:
            return labels.get(key.strip()) == value.strip()
    return label.strip() in labels
