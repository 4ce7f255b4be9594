"""Reading the logs of many runs at once: one statement for the events of a piece, one for the contents they name."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db import connection

from agents.policy.sequences import ContentOf
from control.incidents.backtest.outcome import KINDS, Story
from control.runs.models import Artifact

_EDIT = '"kind":"edit.recorded"'
_AT_ONCE = 200


def stories(runs: Sequence[str]) -> Iterator[tuple[str, Story]]:
    """`(run, story)` of each run that has a log, in order of id."""
    with connection.cursor() as cursor:
        holes, kinds = ", ".join(["%s"] * len(runs)), ", ".join(["%s"] * len(KINDS))
        cursor.execute(
            f"SELECT run_id, body FROM runs_event WHERE run_id IN ({holes}) AND kind IN ({kinds}) ORDER BY run_id, seq",
            [*runs, *KINDS],
        )
        rows = cursor.fetchall()
    content_of = _contents(body for _, body in rows)
    for run, events in groupby(rows, key=itemgetter(0)):
        yield run, Story.of((body for _, body in events), content_of)


def _contents(bodies: Iterator[str]) -> ContentOf:
    """What the edits left behind, fetched together. Retention may have dropped some."""
    wanted = {sha for body in bodies if _EDIT in body and (sha := _sha(body)) is not None}
    found: dict[str, bytes] = {}
    left = sorted(wanted)
    while left:
        part, left = left[:_AT_ONCE], left[_AT_ONCE:]
        found.update((pk, bytes(content)) for pk, content in _stored(part))

    def content_of(reference: Mapping[str, Any]) -> bytes | None:
        return found.get(reference["sha256"])

    return content_of


def _stored(part: Sequence[str]) -> Any:
    return Artifact.objects.filter(pk__in=part).values_list("sha256", "content")


def _sha(body: str) -> str | None:
    """The artifact's hash, without parsing the whole event a second time."""
    at = body.find('"artifact":{')
    if at < 0:
        return None
    start = body.find('"sha256":"', at)
    return body[start + 10 : start + 74] if start > 0 else None
