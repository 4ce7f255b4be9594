"""Routes of what agents remember: their notes are read, added, changed, switched off and deleted."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import ApiError, not_found
from control.api.outputs import ChangedOut, NoteOut, NotesOut
from control.api.schemas import NoteChangeIn, NoteIn
from control.fleet import memory, versions
from control.fleet.models import Agent, Memory

router = Router(tags=["memory"])

_STATUS = {"unknown_note": 404, "version_conflict": 409, "memory_full": 409}


def note_row(row: Memory) -> dict[str, Any]:
    names = ("version", "text", "disabled", "author", "created_at", "changed_by", "changed_at")
    return {"id": row.note, **{name: getattr(row, name) for name in names}}


@router.get("/agents/{name}/memory", auth=Needs("view"), response=NotesOut, summary="What an agent remembers")
def notes(request: HttpRequest, name: str) -> HttpResponse:
    """Oldest first, disabled ones too. A run reads what is enabled when it starts."""
    agent = _agent(name)
    return answer({"agent": agent, "notes": [note_row(row) for row in memory.listed(agent)]})


@router.post("/agents/{name}/memory", auth=Needs("write_memory"), response={201: NoteOut}, summary="Add a note")
def add(request: HttpRequest, name: str, payload: NoteIn) -> HttpResponse:
    def work() -> Done:
        row = _told(lambda: memory.add(_agent(name), payload.text, by=actor_of(request).name))
        return Done(body=note_row(row), status=201, target=f"memory:{row.note}", after=note_row(row))

    return perform(request, Act(action="write_memory", target=f"agent:{name[:80]}"), work)


@router.put("/agents/{name}/memory/{note}", auth=Needs("write_memory"), response=NoteOut, summary="Change a note")
def change(request: HttpRequest, name: str, note: str, payload: NoteChangeIn) -> HttpResponse:
    """A new version: another text, or `disabled` so that later runs do not read it. Runs under way keep theirs."""

    def work() -> Done:
        agent = _agent(name)
        before = note_row(_told(lambda: memory.find(agent, note)))
        fields = payload.dict(exclude={"version"})
        row = _told(lambda: memory.change(agent, note, fields, by=actor_of(request).name, expected=payload.version))
        changed = row.version != before["version"]
        result = "ok" if changed else "unchanged"
        return Done(
            body=note_row(row) | {"changed": changed}, status=200, result=result, before=before, after=note_row(row)
        )

    return perform(request, Act(action="write_memory", target=f"memory:{note[:60]}"), work)


@router.delete(
    "/agents/{name}/memory/{note}", auth=Needs("write_memory"), response=ChangedOut, summary="Delete a note for good"
)
def delete(request: HttpRequest, name: str, note: str) -> HttpResponse:
    """All its versions go, and the audit trail keeps no text of it."""

    def work() -> Done:
        agent = _agent(name)
        _told(lambda: memory.delete(agent, note))
        return Done(body={"changed": True}, status=200, result="deleted")

    return perform(request, Act(action="write_memory", target=f"memory:{note[:60]}"), work)


def _agent(name: str) -> str:
    row = versions.current(Agent, name) if "\x00" not in name else None
    if row is None:
        raise not_found("agent", name)
    return row.name


def _told(work: Any) -> Any:
    """A refusal of the notebook as one of the API."""
    try:
        return work()
    except memory.Refused as error:
        raise ApiError(error.code, str(error), status=_STATUS.get(error.code, 422)) from error
