"""The run page, its earlier turns, and whole results on demand."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe

from control.coloured import coloured
from control.dashboard import again, documents, payloads, side
from control.dashboard.folds import CHART, MARKS, OUTLINE
from control.dashboard.frames import patches
from control.dashboard.payloads import Payload
from control.dashboard.render import root_html, turns_html
from control.runs.models import Event, Run

TURNS_SHOWN = 30
OUTLINE_SHOWN = 300
# A turn that is looked up stands among as many that follow it.
TURNS_AFTER = 8


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
        "again": again.commands(run, request.build_absolute_uri("/api/runs")),
    }
    return render(request, "runs/run.html", context)


@login_required
def at(request: HttpRequest, run_id: str, seq: int) -> HttpResponse:
    """Where the page tells of one event of the log, also if that turn is no longer among the newest."""
    run = find(run_id)
    row = Event.objects.filter(run_id=run.pk, seq=seq).values_list("turn", flat=True)
    if not row:
        raise Http404("There is no event of this number.")
    turn = row[0]
    with documents.opened(run.pk) as kept:
        kept.extend()
        fold = kept.fold
        target = fold.rows.get(seq) or (f"event-{seq}" if f"event-{seq}" in fold.document.nodes else f"turn-{turn}")
        later = [number for number in fold.turns if turn is not None and number > turn]
    query = f"?before={later[TURNS_AFTER]}" if len(later) >= TURNS_SHOWN else ""
    return redirect(f"{reverse('run', kwargs={'run_id': run.pk})}{query}#{target}")


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


def _payload(run: Run, call_id: str) -> Payload:
    found = payloads.of_call(run.pk, call_id)
    if found is None:
        raise Http404("This call has no result yet.")
    return found


def _at(request: HttpRequest, most: int) -> int:
    given = request.GET.get("at", "0")
    return min(int(given), most) if given.isascii() and given.isdigit() and len(given) < 12 else 0


@login_required
def call(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse | StreamingHttpResponse:
    """One call with its result, a slice at a time (`?at=`). `?plain=1` gives the whole text alone."""
    run = find(run_id)
    payload = _payload(run, call_id)
    if request.GET.get("plain"):
        return StreamingHttpResponse(payload.chunks(), content_type="text/plain; charset=utf-8")
    at = _at(request, payload.total)
    text, following = payload.slice(at)
    context = {
        "run": run,
        "call": call_id,
        "payload": payload,
        "text": text,
        "at": at,
        "end": payload.total if following is None else following,
        "next": following,
    }
    return render(request, "runs/call.html", context)


@login_required
def piece(request: HttpRequest, run_id: str, call_id: str) -> HttpResponse:
    """A slice of a result as a fragment: `{html, next, total, note}`."""
    payload = _payload(find(run_id), call_id)
    text, following = payload.slice(_at(request, payload.total))
    return JsonResponse({"html": coloured(text), "next": following, "total": payload.total, "note": payload.note})
