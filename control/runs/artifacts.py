"""Content by its hash, in the database: prompts, tool schemas, large results, edited files."""

import hashlib
from typing import Any

from django.conf import settings

from control.runs.clock import database_now
from control.runs.models import Artifact


class TooLarge(Exception):
    """The content is larger than the store takes; the text says how much it takes."""


def put(content: bytes) -> dict[str, Any]:
    """Keep the content and return its reference `{"sha256": hex, "bytes": n}`. Storing it twice stores it once."""
    if len(content) > settings.ARTIFACT_CAP_BYTES:
        raise TooLarge(f"An artifact may have {settings.ARTIFACT_CAP_BYTES} bytes; this one has {len(content)}.")
    sha256 = hashlib.sha256(content).hexdigest()
    if not Artifact.objects.filter(pk=sha256).exists():
        row = Artifact(sha256=sha256, size=len(content), content=content, created_at=database_now())
        Artifact.objects.bulk_create([row], ignore_conflicts=True)
    return {"sha256": sha256, "bytes": len(content)}


def get(sha256: str) -> bytes:
    """The content. Raises LookupError if it is not (or no longer) kept."""
    row = Artifact.objects.filter(pk=sha256).only("content").first()
    if row is None:
        raise LookupError(f"no artifact {sha256}")
    return bytes(row.content)
