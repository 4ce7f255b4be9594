"""Where a person is signed in: noted as pages are asked for, listed, and ended one by one or all at once."""

import time
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import Error
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from control.accounts.models import SignIn, User
from control.accounts.roles import address

# To the minute is enough for people, and it spares a write per request.
NOTED_EVERY_S = 60.0
_MOST_KEPT = 20_000


class NoteSignIns:
    """After each answer to somebody signed in: this browser was here now."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._noted: dict[str, float] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        key = request.session.session_key
        try:
            user = request.user
            if key and isinstance(user, User) and user.is_active and self._is_due(key):
                note(user, key, request, timezone.now())
        except Error:
            # The answer is more than the note, also where the database is away; the next one tries again.
            self._noted.pop(key or "", None)
        return response

    def _is_due(self, key: str) -> bool:
        now = time.monotonic()
        if now - self._noted.get(key, -NOTED_EVERY_S) < NOTED_EVERY_S:
            return False
        if len(self._noted) > _MOST_KEPT:
            self._noted.clear()
        self._noted[key] = now
        return True


def note(user: User, key: str, request: HttpRequest, now: datetime) -> None:
    browser = request.headers.get("User-Agent", "").replace("\x00", "")[:200]
    given = {"user": user, "seen_at": now, "address": address(request) or "", "browser": browser}
    SignIn.objects.update_or_create(pk=key, defaults=given, create_defaults={**given, "started_at": now})


def listed(user: User) -> list[SignIn]:
    """Those that are still good, the last seen first; what has ended is forgotten."""
    rows = list(user.sign_ins.order_by("-seen_at"))
    keys = [row.pk for row in rows]
    good = set(Session.objects.filter(pk__in=keys, expire_date__gt=timezone.now()).values_list("pk", flat=True))
    SignIn.objects.filter(user=user, seen_at__lt=timezone.now() - timedelta(minutes=1)).exclude(pk__in=good).delete()
    return [row for row in rows if row.pk in good]


def end(user: User, handle: str) -> str | None:
    """End one of their sessions; its key, or None if it is none of theirs or has ended."""
    key = next((row.pk for row in user.sign_ins.all() if row.handle == handle), None)
    return key if key is not None and _end([key]) else None


def end_others(user: User, here: str) -> int:
    """End all but the one in `here`."""
    return _end(list(user.sign_ins.exclude(pk=here).values_list("pk", flat=True)))


def end_all(user: User) -> int:
    """End every session of a person, also those that no page has noted yet; how many were known."""
    many = _end(list(user.sign_ins.values_list("pk", flat=True)))
    User.objects.filter(pk=user.pk).update(sign_outs=F("sign_outs") + 1)
    return many


def _end(keys: Collection[str]) -> int:
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore
    for key in keys:
        store(key).delete()
    return SignIn.objects.filter(pk__in=list(keys)).delete()[0]
