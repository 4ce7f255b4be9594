"""Secrets of routes: kept encrypted with a key made from SECRET_KEY, opened only to send, shown to nobody again.

In place of a secret one may give where it lies, `env:ALERT_…`; then only that is kept, and it is read anew each time.
Other variables are out of reach: whoever writes routes could have any of them sent somewhere.
"""

import base64
import hashlib
import os
import re
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

HIDDEN = "••••••••"
_REFERENCE = re.compile(r"env:ALERT_[A-Z0-9_]{1,60}")


class Unreadable(Exception):
    """The text says which setting and what to do; it never holds a secret."""


def _box() -> Fernet:
    digest = hashlib.sha256(b"alert routes\0" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))


def seal(secret: str) -> str:
    """How a secret is kept. What only says where a secret lies is kept as it is."""
    return secret if is_reference(secret) else "sealed:" + _box().encrypt(secret.encode()).decode()


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def opened(sealed: Mapping[str, str]) -> dict[str, str]:
    """The secrets themselves. Raises Unreadable for one that is not there or was sealed with another SECRET_KEY."""
    return {name: _open(name, kept) for name, kept in sealed.items() if kept}


def _open(name: str, kept: str) -> str:
    if is_reference(kept):
        variable = kept.removeprefix("env:")
        found = os.environ.get(variable, "").strip()
        if not found:
            raise Unreadable(f"{name} is not there: put it into the environment variable {variable}.")
        return found
    try:
        return _box().decrypt(kept.removeprefix("sealed:").encode()).decode()
    except InvalidToken:
        raise Unreadable(f"{name} was sealed with another SECRET_KEY. Give it anew.") from None


def shown(kept: str) -> str:
    """What a page may say of a kept secret."""
    return kept if is_reference(kept) else HIDDEN
