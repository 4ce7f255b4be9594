"""Who may open a socket: a signed-in person from this very origin, or a bearer token."""

import http.cookies
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from control.accounts import tokens

_DEFAULT_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """`still` tells, when asked again later, whether the session or token is good as ever."""

    still: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Turned away, with a code for the log of the server."""

    code: str


def admit(headers: Mapping[str, str]) -> Admitted | Turned:
    """Judge the headers of a handshake. Reads the database: call it in a thread."""
    origin = headers.get("origin")
    bearer = headers.get("authorization")
    if origin is not None and not _trusted(origin):
        return Turned(code="bad_origin")
    if bearer is not None:
        if tokens.authenticate(bearer) is None:
            return Turned(code="bad_token")
        return Admitted(still=lambda: tokens.authenticate(bearer) is not None)
    if origin is None:
        return Turned(code="no_origin")
    key = _session_key(headers.get("cookie", ""))
    if key is None or not _signed_in(key):
        return Turned(code="no_session")
    return Admitted(still=lambda: _signed_in(key))


def parse_origin(text: str) -> Origin | None:
    """Scheme, host and port; `null` and anything with more than these is none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.path or parts.query or parts.fragment:
        return None
    if parts.username is not None or parts.password is not None:
        return None
    return parts.scheme, parts.hostname, port if port is not None else _DEFAULT_PORTS[parts.scheme]


def _trusted(origin: str) -> bool:
    given = parse_origin(origin)
    return given is not None and any(given == parse_origin(known.rstrip("/")) for known in settings.TRUSTED_ORIGINS)


def _session_key(cookie: str) -> str | None:
    try:
        found = http.cookies.SimpleCookie(cookie).get(settings.SESSION_COOKIE_NAME)
    except http.cookies.CookieError:
        return None
    return found.value if found else None


def _signed_in(key: str) -> bool:
    """Whether this session is there, not expired, and of an active person whose password has not changed since."""
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore
    request = HttpRequest()
    request.session = store(key)
    user = get_user(request)
    return bool(user.is_authenticated and user.is_active)
