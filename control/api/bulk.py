"""Routes of bulks: interrupt or steer many runs by filter, see how it goes, end it midway; blocks and their lifting."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from agents.commands import CommandKind
from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.commands import steer_args
from control.api.errors import not_found
from control.api.outputs import BlocksOut, BulkDryOut, BulkOut, BulkRunsOut, BulkStartedOut, ChangedOut
from control.api.schemas import BulkIn, LiftIn, SteerManyIn
from control.runs import bulk_progress, bulks, many
from control.runs.models import Block, Bulk
from control.runs.selection import Selection, as_id

router = Router(tags=["bulk"])
BULK = {200: BulkDryOut, 202: BulkStartedOut}
LINES = 200


@router.post("/interrupt", auth=Needs("interrupt"), response=BULK, summary="Interrupt many runs by filter")
def interrupt(request: HttpRequest, payload: BulkIn) -> HttpResponse:
    """With `dry_run`: who would be stopped and who not, and why. With `block_new_starts`: matching starts are refused
    with 423 until the block is lifted. The answer comes at once; `GET /api/bulk/{id}` tells how far it has come."""
    chosen = Selection.of(**payload.filter.dict())
    if payload.dry_run:
        chosen.refuse_empty()
        return answer(many.preview(chosen, block_new_starts=payload.block_new_starts))
    wish = bulks.Wish(
        kind=CommandKind.INTERRUPT,
        chosen=chosen,
        by=actor_of(request).name,
        reason=payload.reason,
        block=payload.block_new_starts,
    )
    return perform(request, act_of(wish), lambda: decided(wish), then=wish.begin)


@router.post("/steer", auth=Needs("steer"), response=BULK, summary="Give many runs a note by filter")
def steer(request: HttpRequest, payload: SteerManyIn) -> HttpResponse:
    """Each run gets the note as a command of its own, with a receipt of its own: `GET /api/bulk/{id}/runs`."""
    chosen = Selection.of(**payload.filter.dict())
    args = steer_args(payload.note)
    if payload.dry_run:
        chosen.refuse_empty()
        return answer(many.preview(chosen, CommandKind.STEER))
    wish = bulks.Wish(kind=CommandKind.STEER, chosen=chosen, by=actor_of(request).name, reason=None, args=args)
    return perform(request, act_of(wish), lambda: decided(wish), then=wish.begin)


def act_of(wish: bulks.Wish) -> Act:
    action = "interrupt_many" if wish.kind is CommandKind.INTERRUPT else "steer_many"
    return Act(action=action, target="runs", reason=wish.reason, filter=wish.chosen.as_json())


def decided(wish: bulks.Wish) -> Done:
    """What a bulk will do, as an act."""
    body = wish.decide()
    after = {name: body[name] for name in ("bulk", "block", "eligible")} | dict(wish.args)
    return Done(body=body, target=f"bulk:{wish.bulk}", after=after, result="ok" if body["changed"] else body["reason"])


@router.get("/bulk/{bulk_id}", auth=Needs("view"), response=BulkOut, summary="How far a bulk has come")
def progress(request: HttpRequest, bulk_id: str) -> HttpResponse:
    """Counts by state of every run that it reaches, failures with their reason, seconds since the request."""
    known = as_id(bulk_id)
    found = bulk_progress.progress(known) if known else None
    if found is None:
        raise not_found("bulk", bulk_id)
    return answer(found)


@router.get("/bulk/{bulk_id}/runs", auth=Needs("view"), response=BulkRunsOut, summary="The receipt of each run")
def bulk_runs(request: HttpRequest, bulk_id: str, after: str = "", limit: int = LINES) -> HttpResponse:
    """In order of id; `next` goes into `after` for the following ones."""
    known = as_id(bulk_id)
    bulk = Bulk.objects.filter(pk=known).first() if known else None
    if bulk is None:
        raise not_found("bulk", bulk_id)
    rest = [line for line in bulk_progress.lines(bulk) if line.run > after]
    page = rest[: max(1, min(limit, LINES))]
    return answer({"runs": [asdict(line) for line in page], "next": page[-1].run if len(page) < len(rest) else None})


@router.delete("/bulk/{bulk_id}", auth=Needs("interrupt"), response=ChangedOut, summary="Ask no further runs")
def cancel(request: HttpRequest, bulk_id: str, payload: LiftIn) -> HttpResponse:
    """Stops a bulk midway. Runs that were asked already go on stopping; a block stays until it is lifted."""
    act = Act(action="cancel_bulk", target=f"bulk:{bulk_id[:60]}", reason=payload.reason)
    return perform(request, act, lambda: cancel_bulk(bulk_id, by=actor_of(request).name, reason=payload.reason))


def cancel_bulk(bulk_id: str, *, by: str, reason: str) -> Done:
    known = as_id(bulk_id)
    if known is None or not Bulk.objects.filter(pk=known).exists():
        raise not_found("bulk", bulk_id)
    changed, why = bulks.cancel(known, by=by, reason=reason)
    return Done(body={"changed": changed, "reason": why}, status=200, result=why or "ok")


@router.get("/blocks", auth=Needs("view"), response=BlocksOut, summary="Blocks on new starts")
def blocks(request: HttpRequest, lifted: bool = False) -> HttpResponse:
    """Those in force; with `lifted=true` the former ones as well, the newest 200."""
    found = Block.objects.all() if lifted else Block.objects.filter(lifted_at__isnull=True)
    return answer({"blocks": [_row(block) for block in found.order_by("-created_at")[:200]]})


def _row(block: Block) -> dict[str, Any]:
    names = ("filter", "reason", "by", "created_at", "lifted_at", "lifted_by", "lift_reason")
    return {"id": block.pk} | {name: getattr(block, name) for name in names}


@router.delete("/blocks/{block_id}", auth=Needs("lift"), response=ChangedOut, summary="Lift a block on new starts")
def lift(request: HttpRequest, block_id: str, payload: LiftIn) -> HttpResponse:
    act = Act(action="lift", target=f"block:{block_id[:60]}", reason=payload.reason)
    return perform(request, act, lambda: lift_block(block_id, by=actor_of(request).name, reason=payload.reason))


def lift_block(block_id: str, *, by: str, reason: str) -> Done:
    known = as_id(block_id)
    block = Block.objects.filter(pk=known).first() if known else None
    if block is None:
        raise not_found("block", block_id)
    open_one = Block.objects.filter(pk=block.pk, lifted_at__isnull=True)
    changed = bool(open_one.update(lifted_at=timezone.now(), lifted_by=by, lift_reason=reason))
    result = None if changed else "already_lifted"
    return Done(body={"changed": changed, "reason": result}, status=200, result=result or "ok", before=block.filter)
