"""Routes of the kill switch: interrupt many runs by filter, see how it goes, block new starts and lift the block."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import not_found
from control.api.outputs import BlocksOut, BulkDryOut, BulkOut, BulkStartedOut, ChangedOut
from control.api.schemas import BulkIn, LiftIn
from control.runs import many
from control.runs.models import Block
from control.runs.selection import Selection, as_id

router = Router(tags=["bulk"])
BULK = {200: BulkDryOut, 202: BulkStartedOut}


@router.post("/interrupt", auth=Needs("interrupt"), response=BULK, summary="Interrupt many runs by filter")
def interrupt(request: HttpRequest, payload: BulkIn) -> HttpResponse:
    """With `dry_run`: who would be stopped and who not, and why. With `block_new_starts`: matching starts are refused
    with 423 until the block is lifted."""
    chosen = Selection.of(**payload.filter.dict())
    act = Act(action="interrupt_many", target="runs", reason=payload.reason, filter=chosen.as_json())
    if payload.dry_run:
        chosen.refuse_empty()
        return answer(many.preview(chosen, block=payload.block_new_starts))
    kill = many.Kill(chosen=chosen, by=actor_of(request).name, reason=payload.reason, block=payload.block_new_starts)
    return perform(request, act, lambda: decided(kill), then=kill.carry_out)


def decided(kill: many.Kill) -> Done:
    """What a bulk interrupt will do, as an act."""
    body = kill.decide()
    after = {name: body[name] for name in ("bulk", "block", "eligible")}
    return Done(body=body, target=f"bulk:{kill.bulk}", after=after, result="ok" if body["changed"] else body["reason"])


@router.get("/bulk/{bulk_id}", auth=Needs("view"), response=BulkOut, summary="How far a bulk interrupt has come")
def progress(request: HttpRequest, bulk_id: str) -> HttpResponse:
    known = as_id(bulk_id)
    found = many.progress(known) if known else None
    if found is None:
        raise not_found("bulk", bulk_id)
    return answer(found)


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
