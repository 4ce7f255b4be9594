"""The run page, its earlier turns, and whole results on demand."""

from typing import Any

import orjson
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe

from control.dashboard import documents, side
from control.dashboard.folds import CHART, MARKS, OUTLINE
from control.dashboard.frames import patches
from control.dashboard.render import root_html, turns_html
from control.runs.models import Artifact, Call, Event, Run

TURNS_SHOWN = 30
OUTLINE_SHOWN = 300
# Above this a whole result is shown cut; the rest is in its artifact.
WHOLE = 2_000_000


def find(run_id: Any) -> Run:
    run = Run.objects.filter(pk=str(run_id)).first()
    if run is None:
        raise Http404("There is no run of this id.")
    return run


def _before(request: HttpRequest) -> int | None:
    given = request.GET.get("before", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 9 else None


@login_required
def page(request: HttpRequest, run_id: str) -> HttpResponse:
    """One run as it stands now; live frames go on from `after`."""
    run = find(run_id)
    before = _before(request)
    with documents.opened(run.pk) as kept:
        after = kept.extend()
        turns, earlier = turns_html(kept.fold.document, last=TURNS_SHOWN, before=before)
        roots = {root: root_html(kept.fold.document, root, OUTLINE_SHOWN) for root in (OUTLINE, MARKS, CHART)}
        turns_hidden = max(0, len(kept.fold.turns) - OUTLINE_SHOWN)
    # Read after the log: the numbers may be ahead of the turns, never behind what the first frame brings.
    run = find(run_id)
    context = side.context_of(run)
    shown = side.parts_of(context)
    context |= {
        "side": {name: mark_safe(shown[f"side-{name}"]) for name in side.PARTS},
        "turns": turns,
        **roots,
        "turns_hidden": turns_hidden,
        "earlier": earlier,
        "historic": before is not None,
        "after": after,
        "section": "run",
    }
    return render(request, "runs/run.html", context)


@login_required
def earlier(request: HttpRequest, run_id: str) -> HttpResponse:
    """Cards before a turn, as a fragment: `{html, earlier}`."""
    run = find(run_id)
    with documents.opened(run.pk) as kept:
        kept.extend()
        html, more = turns_html(kept.fold.document, last=TURNS_SHOWN, before=_before(request))
    return JsonResponse({"html": html, "earlier": more})


@login_required
def changes(request: HttpRequest, run_id: str) -> HttpResponse:
    """What a live frame would bring after a cursor; the page asks this while sockets fail."""
    run = find(run_id)
    after = request.GET.get("after", "")
    if not after.isascii() or not after.isdigit():
        return JsonResponse(
            {"error": {"code": "bad_cursor", "message": "`after` is the last seq you have."}}, status=400
        )
    with documents.opened(run.pk) as kept:
        last = kept.extend()
        if int(after) > last:
            return _problem("cursor_ahead", "This page is ahead of the log: reload it.", last_seq=last)
        found = patches(kept, int(after))
    parts = side.parts_of(side.context_of(find(run_id)))
    found += [{"op": "replace", "target": id, "id": id, "html": html} for id, html in parts.items()]
    return JsonResponse({"type": "patches", "seq": last, "patches": found})


def _problem(code: str, message: str, **detail: Any) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message, "detail": detail}}, status=400)


@login_required
def call(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse:
    """One call with its whole result, which the run page only previews. `?plain=1` gives the text alone."""
    run = find(run_id)
    row = Call.objects.filter(run_id=run.pk, id=call_id).first()
    event = (
        Event.objects.filter(run_id=run.pk, seq=row.completed_seq).values_list("body", flat=True).first()
        if row and row.completed_seq
        else None
    )
    if event is None:
        raise Http404("This call has no result yet.")
    data = orjson.loads(event)["data"]
    text = str(data.get("result") or data.get("text") or "")
    note = ""
    artifact = data.get("artifact")
    if isinstance(artifact, dict):
        kept = Artifact.objects.filter(pk=str(artifact.get("sha256"))).first()
        if kept is None:
            note = "The whole result is no longer kept; this is its head and tail."
        else:
            text = bytes(kept.content).decode(errors="replace")
    if len(text) > WHOLE:
        note, text = f"Cut: the first {WHOLE:,} of {len(text):,} characters.", text[:WHOLE]
    if request.GET.get("plain"):
        return HttpResponse(text, content_type="text/plain; charset=utf-8")
    context = {
        "run": run,
        "call": call_id,
        "name": data.get("name"),
        "args": data.get("args"),
        "result": text,
        "note": note,
    }
    return render(request, "runs/call.html", context)
