"""What a waiting run waits for, as its log tells it, and whether an edited call would fit its tool."""

import json
from collections.abc import Mapping
from typing import Any

from agents.errors import ToolError
from agents.events import decode
from agents.kinds import RunWaiting
from agents.policy.redaction import has_marker
from agents.tools.registry import Registry, default_tools, parse_args
from control.runs.models import Event

_KNOWN = Registry(default_tools(web=True))
MARKED = (
    "The arguments hold a marker in place of a secret, which would be taken as it stands. Approve the call as it is, "
    "write the real value, or deny it."
)


def last(run_id: str) -> RunWaiting | None:
    """The run's latest `run.waiting`."""
    found = Event.objects.filter(run_id=run_id, kind="run.waiting").order_by("-seq").values_list("body", flat=True)
    body = decode(found[0]).data if found[:1] else None
    return body if isinstance(body, RunWaiting) else None


def unfit(run_id: str, call: str, args: Mapping[str, Any] | None) -> str | None:
    """Why these arguments cannot take the place of those that wait for approval; None if nothing here speaks against
    them. Tools of other servers are known only to the run, which asks again."""
    raw = json.dumps(args, ensure_ascii=False)
    if "\\u0000" in raw or any("\ud800" <= char <= "\udfff" for char in raw):
        return "The arguments hold a NUL or half a surrogate pair, which cannot be kept. Leave these characters out."
    if has_marker(raw):
        return MARKED
    waiting = last(run_id)
    tool = _KNOWN.get(waiting.name or "") if waiting is not None and waiting.call == call else None
    if tool is None:
        return None
    try:
        parse_args(tool.spec, raw)
    except ToolError as error:
        return error.message
    return None
