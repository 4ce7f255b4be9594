"""The audit trail: one row for each act, written by whoever did it and never changed."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from control.accounts.models import AuditEntry, Role
from control.accounts.roles import Actor, of_request

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
        actor=actor.name[:150],
        role=actor.role.value,
        action=action[:60],
        target=target[:200],
        reason=reason,
        filter=filter,
        before=before,
        after=after,
        result=result[:100],
        address=actor.address,
    )
