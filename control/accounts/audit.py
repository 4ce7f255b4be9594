"""The audit trail: one row for each act, written by whoever did it and never changed."""

import re
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from control.accounts.models import AuditEntry, Role
from control.accounts.roles import Actor, of_request

_LONE = re.compile("[\ud800-\udfff]")
NOBODY = Actor(name="nobody", role=Role.VIEWER)


def record(
    request_or_actor: HttpRequest | Actor,
    action: str,
    target: str,
    *,
    reason: str | None = None,
    filter: Any = None,
    before: Any = None,
    after: Any = None,
    result: str = "ok",
) -> AuditEntry:
    """Write one row. `action` is a verb (`interrupt`), `target` what it hit (`run:<id>`), `result` `ok` or a code."""
    actor = request_or_actor if isinstance(request_or_actor, Actor) else of_request(request_or_actor) or NOBODY
    return AuditEntry.objects.create(
        at=timezone.now(),
        actor=_storable(actor.name)[:150],
        role=actor.role.value,
        action=action[:60],
        target=_storable(target)[:200],
        reason=None if reason is None else _storable(reason),
        filter=filter,
        before=before,
        after=after,
        result=result[:100],
        address=actor.address,
    )


def _storable(text: str) -> str:
    """Also what was asked for in a broken way is written down: addresses with a NUL, half characters."""
    return _LONE.sub("\ufffd", text.replace("\x00", "\u2400"))
