"""The filter of a bulk as a form, and the fleet's own query in these words."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from control.runs.selection import BadSelection, Selection

FIELDS = ("status", "agent", "label", "project", "q")
# What a stop or a note can still reach.
ALIVE = "running,waiting,queued"
LONGEST = 300
MOST_PICKED = 500
_TERM = re.compile(r"(agent|status|label|project):(\S+)")


def given(query: Mapping[str, Any], ids: list[str]) -> dict[str, Any]:
    """What the form holds, tidied: only what was filled in. Several runs come as `ids` each, or with commas."""
    found: dict[str, Any] = {
        name: text for name in FIELDS if (text := str(query.get(name, "")).replace("\x00", "").strip()[:LONGEST])
    }
    picked = [word.strip() for each in ids for word in each.split(",") if word.strip()]
    if picked:
        found["ids"] = picked[:MOST_PICKED]
    if query.get("all"):
        found["all"] = True
    return found


def chosen(filter: Mapping[str, Any]) -> tuple[Selection | None, str]:
    """The runs that it means, and what is wrong with it; both empty for an empty form."""
    if not filter:
        return None, ""
    try:
        return Selection.of(**filter), ""
    except BadSelection as error:
        return None, error.message


def words(filter: Mapping[str, Any]) -> str:
    """The filter in a few words, as banner and audit show it."""
    told = [f"{name} {filter[name]}" for name in ("status", "agent", "label", "project") if filter.get(name)]
    if filter.get("q"):
        told.append(f"“{filter['q']}”")
    if ids := filter.get("ids"):
        told.append(f"{len(ids)} picked run{'' if len(ids) == 1 else 's'}")
    return " and ".join(told) or "every run"


def from_fleet(q: str, view: str) -> str:
    """The query string that takes the fleet's filter along."""
    found: dict[str, str] = dict(_TERM.findall(q))
    if rest := " ".join(word for word in _TERM.sub(" ", q).split() if ":" not in word):
        found["q"] = rest
    if view == "needs":
        found["status"] = "waiting"
    elif "status" not in found:
        found["status"] = ALIVE
    return urlencode(found)
