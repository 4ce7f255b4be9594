"""Many runs at once: the kill switch and the note for many, how far they have come, and blocks with their lifting."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from agents.commands import CommandKind
from agents.ids import new_id
from agents.policy.redaction import make_safe
from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import bulk_form, rooms
from control.dashboard.views.verbs import NOTE_LONGEST
from control.runs import bulk_progress, bulks, many
from control.runs.models import Block, Bulk
from control.runs.selection import Selection, as_id

LINES_SHOWN = 200
BLOCKS_SHOWN = 50
CONFIRM = "stop"


@login_required
def stop(request: HttpRequest) -> HttpResponse:
    """The kill switch: choose, see who would be stopped and who not, confirm by typing."""
    return _page(request, CommandKind.INTERRUPT)


@login_required
def steer(request: HttpRequest) -> HttpResponse:
    """One note for many runs."""
    return _page(request, CommandKind.STEER)


def _page(request: HttpRequest, kind: CommandKind) -> HttpResponse:
    if answer := rooms.refused(request, kind.value, "runs", "/"):
        return answer
    posted = request.method == "POST"
    query = request.POST if posted else request.GET
    filter = bulk_form.given(query, query.getlist("ids"))
    chosen, problem = bulk_form.chosen(filter)
    context: dict[str, Any] = {
        "section": "fleet",
        "kind": kind.value,
        "filter": filter,
        "ids": ",".join(filter.get("ids", ())),
        "told": bulk_form.words(filter),
        "problem": problem,
        "confirm_word": CONFIRM,
        "wish": as_id(query.get("wish", "")) or new_id(),
        "typed": {name: query.get(name, "") for name in ("reason", "note", "block")},
        "errors": {},
    }
    if posted and chosen is not None:
        context["errors"] = _errors(request, kind)
        if not context["errors"]:
            return _do(request, _wish(request, kind, chosen, context["wish"]))
    if chosen is not None:
        context["preview"] = many.preview(chosen, kind)
    return render(request, "bulk/ask.html", context, status=400 if context["errors"] or problem else 200)


def _errors(request: HttpRequest, kind: CommandKind) -> dict[str, str]:
    post, found = request.POST, {}
    if kind is CommandKind.STEER:
        note = _said(request, "note")
        if not note:
            found["note"] = "A note needs some text."
        elif len(note) > NOTE_LONGEST:
            found["note"] = f"A note may have {NOTE_LONGEST:,} characters."
        return found
    if not _said(request, "reason"):
        found["reason"] = "Say why: it stands in the log of every run and in the banner."
    if post.get("confirm", "").strip().lower() != CONFIRM:
        found["confirm"] = f"Type the word {CONFIRM} to confirm."
    return found


def _said(request: HttpRequest, name: str) -> str:
    return make_safe(request.POST.get(name, "")).text.strip()


def _wish(request: HttpRequest, kind: CommandKind, chosen: Selection, bulk: str) -> bulks.Wish:
    actor = of_request(request)
    assert actor is not None
    note = kind is CommandKind.STEER
    return bulks.Wish(
        kind=kind,
        chosen=chosen,
        by=actor.name,
        reason=None if note else _said(request, "reason")[:500],
        args={"note": _said(request, "note")} if note else {},
        block=not note and bool(request.POST.get("block")),
        bulk=bulk,
    )


def _do(request: HttpRequest, wish: bulks.Wish) -> HttpResponse:
    """Sent twice, the form leads to the same bulk."""
    if not Bulk.objects.filter(pk=wish.bulk).exists():
        with transaction.atomic():
            body = wish.decide()
            after = {name: body[name] for name in ("bulk", "block", "eligible")} | dict(wish.args)
            audit.record(
                request,
                f"{wish.kind.value}_many",
                f"bulk:{wish.bulk}",
                reason=wish.reason,
                filter=wish.chosen.as_json(),
                after=after,
                result="ok" if body["changed"] else body["reason"],
            )
        wish.begin()
        if body["bulk"] is None:
            text = (
                "New starts are blocked; there was nothing to stop." if body["block"] else "Nothing matched any more."
            )
            return rooms.told(request, text, "blocks" if body["block"] else "fleet", good=bool(body["block"]))
    return redirect("bulk", bulk_id=wish.bulk)


# --- one bulk ------------------------------------------------------------------------------------------------------


@login_required
@require_safe
def one(request: HttpRequest, bulk_id: str) -> HttpResponse:
    """How far it has come, with every run of it that is worth a look."""
    bulk = _found(bulk_id)
    told = bulk_progress.progress(bulk.pk)
    assert told is not None
    lines = bulk_progress.lines(bulk)
    # What went wrong first, then what is not over yet.
    rank = {"finished": 3, "stopped": 3, "injected": 3}
    lines.sort(key=lambda line: (not line.code, rank.get(line.state, 1), line.run))
    counts = told["counts"]
    over = counts.get("stopped", 0) + counts.get("finished", 0) + counts.get("injected", 0)
    context = {
        "section": "fleet",
        "bulk": bulk,
        "told": told,
        "counts": [(name, counts[name]) for name in counts if counts[name] or name in ("stopped", "verified")],
        "over": over,
        "share": over / max(told["total"] + told["left"], 1),
        "lines": lines[:LINES_SHOWN],
        "hidden": max(0, len(lines) - LINES_SHOWN),
        "words": bulk_form.words(bulk.filter),
        "can_end": bulk.asked_at is None and bulk.cancelled_at is None,
    }
    return render(request, "bulk/one.html", context)


@login_required
@require_POST
def cancel(request: HttpRequest, bulk_id: str) -> HttpResponse:
    """Ask no further runs."""
    if answer := rooms.refused(request, "interrupt", f"bulk:{bulk_id}", f"/bulks/{bulk_id}/"):
        return answer
    bulk = _found(bulk_id)
    actor = of_request(request)
    assert actor is not None
    reason = _said(request, "reason")[:500]
    changed, why = bulks.cancel(bulk.pk, by=actor.name, reason=reason)
    audit.record(request, "cancel_bulk", f"bulk:{bulk.pk}", reason=reason or None, result=why or "ok")
    text = "Ended midway: no further run is asked." if changed else "Too late: every run has been asked."
    return rooms.told(request, text, f"/bulks/{bulk.pk}/", good=changed)


def _found(bulk_id: str) -> Bulk:
    found = Bulk.objects.filter(pk=str(bulk_id)).first()
    if found is None:
        raise Http404("There is no bulk of this id.")
    return found


# --- blocks --------------------------------------------------------------------------------------------------------


@login_required
@require_safe
def blocks(request: HttpRequest) -> HttpResponse:
    """Blocks on new starts, those in force first, and the last bulks."""
    rows = Block.objects.order_by("-created_at")[:BLOCKS_SHOWN]
    context = {
        "section": "fleet",
        "in_force": [_block(row) for row in rows if row.lifted_at is None],
        "lifted": [_block(row) for row in rows if row.lifted_at is not None],
        "bulks": [(row, bulk_form.words(row.filter)) for row in Bulk.objects.order_by("-issued_at")[:20]],
        "now": timezone.now(),
    }
    return render(request, "bulk/blocks.html", context)


def _block(row: Block) -> dict[str, Any]:
    return {"row": row, "words": bulk_form.words(row.filter)}


@login_required
@require_POST
def lift(request: HttpRequest, block_id: str) -> HttpResponse:
    """New starts again; the reason is kept."""
    target = f"block:{block_id}"
    if answer := rooms.refused(request, "lift", target, "/blocks/"):
        return answer
    reason = _said(request, "reason")[:500]
    row = Block.objects.filter(pk=str(block_id)).first()
    if row is None:
        raise Http404("There is no block of this id.")
    if not reason:
        return rooms.told(request, "Say why it is lifted; nothing was changed.", "blocks", good=False)
    actor = of_request(request)
    assert actor is not None
    open_one = Block.objects.filter(pk=row.pk, lifted_at=None)
    changed = bool(open_one.update(lifted_at=timezone.now(), lifted_by=actor.name, lift_reason=reason))
    result = "ok" if changed else "already_lifted"
    audit.record(request, "lift", target, reason=reason, before=row.filter, result=result)
    text = "Lifted: runs may start again." if changed else "It was lifted already."
    return rooms.told(request, text, "blocks", good=changed)


@login_required
@require_safe
def banner(request: HttpRequest) -> HttpResponse:
    """The banner alone; open pages ask for it now and then."""
    return render(request, "_banner.html")
