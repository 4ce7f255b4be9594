"""Words looked for in all of one run's log; the page shows only its newest turns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from control.dashboard import documents
from control.dashboard.views.run import find
from control.runs.models import Event, Run

SHOWN = 40
LONGEST, SHORTEST = 200, 2
# After so many events in which the words stand elsewhere than in a text, the reader is asked whether to go on.
MOST_LOOKED_AT = 4_000
_BEFORE, _AFTER = 40, 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Where the words stand: the event, the element that tells of it, and the words among their neighbours."""

    seq: int
    turn: int | None
    kind: str
    place: str
    before: str
    words: str
    after: str


@login_required
def page(request: HttpRequest, run_id: str) -> HttpResponse:
    """The events whose texts hold the words, the oldest first; `?part=1` gives the list alone."""
    run = find(run_id)
    words = request.GET.get("q", "").replace("\x00", "").strip()[:LONGEST]
    given = request.GET.get("after", "")
    after = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0
    hits, following = _hits(run, words, after) if len(words) >= SHORTEST else ([], None)
    context = {"run": run, "words": words, "hits": hits, "next": following, "shortest": SHORTEST, "after": after}
    name = "runs/find/_hits.html" if request.GET.get("part") else "runs/find/page.html"
    return render(request, name, {"section": "run", **context})


def _hits(run: Run, words: str, after: int) -> tuple[list[Hit], int | None]:
    """Up to a page of hits, and the `seq` to go on after; None when the log has been gone through."""
    # As the words stand in the log's JSON.
    needle = orjson.dumps(words).decode()[1:-1]
    rows = Event.objects.filter(run_id=run.pk, seq__gt=after, body__icontains=needle).order_by("seq")
    found: list[tuple[int, int | None, str, tuple[str, str, str]]] = []
    lines = rows.values_list("seq", "turn", "kind", "body").iterator(chunk_size=50)
    for looked_at, (seq, turn, kind, body) in enumerate(lines):
        if len(found) == SHOWN or looked_at == MOST_LOOKED_AT:
            return _placed(run, found), seq - 1
        around = next(_around(orjson.loads(body).get("data"), words.casefold()), None)
        if around is not None:
            found.append((seq, turn, kind, around))
    return _placed(run, found), None


def _placed(run: Run, found: list[tuple[int, int | None, str, tuple[str, str, str]]]) -> list[Hit]:
    with documents.opened(run.pk) as kept:
        kept.extend()
        rows = kept.fold.rows
        return [
            Hit(
                seq=seq, turn=turn, kind=kind, place=rows.get(seq, f"event-{seq}"), before=before, words=words,
                after=behind,
            )
            for seq, turn, kind, (before, words, behind) in found
        ]  # fmt: skip


def _around(value: Any, words: str) -> Iterator[tuple[str, str, str]]:
    """The words in the texts of a value, each time with what stands around them. Keys are no texts."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, str) and (at := one.casefold().find(words)) >= 0:
            end = at + len(words)
            yield one[max(0, at - _BEFORE) : at], one[at:end], one[end : end + _AFTER]
