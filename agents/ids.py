"""UUIDv7 strings: the one form of id, ordered by time of creation."""

from uuid_utils import uuid7


def new_id() -> str:
    """A fresh UUIDv7 in its 36-character form (RFC 9562, section 5.7)."""
    return str(uuid7())
