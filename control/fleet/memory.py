"""Notes that an agent keeps from run to run: written by its runs and by people, read by every later run."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from agents.ids import new_id
from agents.policy.memory import LONGEST_NOTE, chosen
from agents.policy.redaction import make_safe
from control.fleet.models import Memory

# Runs may fill a notebook up to here; then a person has to look through it.
MOST_NOTES = 200


class Refused(Exception):
    """`code`: empty_note, note_too_long, memory_full, unknown_note, version_conflict."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def listed(agent: str) -> list[Memory]:
    """The notes as they stand, oldest first, disabled ones too."""
    return list(Memory.objects.filter(agent=agent, current=True).order_by("created_at", "id"))


def for_run(agent: str) -> tuple[str, ...]:
    """What a run that starts now gets to read."""
    return chosen([row.text for row in listed(agent) if not row.disabled])


def keep(agent: str, text: str, *, run: str, call: str) -> bool:
    """A run's own note. False if there is such a note already, also a disabled one. Raises Refused."""
    if Memory.objects.filter(call=call, version=1).exists():
        return True
    safe = _text(text)
    known = listed(agent)
    if any(row.text == safe for row in known):
        return False
    if len(known) >= MOST_NOTES:
        message = f"The notebook is full ({MOST_NOTES} notes); nothing was kept. A person has to look through it."
        raise Refused("memory_full", message)
    try:
        with transaction.atomic():
            _insert(agent, safe, by=f"run:{run}", call=call)
    except IntegrityError:
        return True  # the same call, by another worker
    return True


def add(agent: str, text: str, *, by: str) -> Memory:
    """A person's note. Raises Refused."""
    return _insert(agent, _text(text), by=by, call=None)


def change(agent: str, note: str, fields: Mapping[str, Any], *, by: str, expected: int | None = None) -> Memory:
    """A new version with another text, or disabled, or enabled again. Saving what is there changes nothing."""
    with transaction.atomic():
        before = _current(agent, note)
        if expected is not None and expected != before.version:
            raise Refused("version_conflict", f"Version {before.version} is current by now. Read it again first.")
        text = _text(fields["text"]) if fields.get("text") is not None else before.text
        disabled = before.disabled if fields.get("disabled") is None else bool(fields["disabled"])
        if (text, disabled) == (before.text, before.disabled):
            return before
        # Of two who saw the same version, one retires it; the other meets no row.
        if not Memory.objects.filter(pk=before.pk, current=True).update(current=False):
            raise Refused("version_conflict", "Somebody else changed the note meanwhile. Read it again first.")
        return Memory.objects.create(
            note=note,
            version=before.version + 1,
            agent=agent,
            text=text,
            disabled=disabled,
            author=before.author,
            created_at=before.created_at,
            changed_by=by,
            changed_at=timezone.now(),
        )


def delete(agent: str, note: str) -> None:
    """Every version of it goes: what was deleted is nowhere here. Runs that read it keep what they read."""
    if not Memory.objects.filter(agent=agent, note=note).delete()[0]:
        raise _unknown(agent, note)


def find(agent: str, note: str) -> Memory:
    """Raises Refused `unknown_note`."""
    return _current(agent, note)


def _current(agent: str, note: str) -> Memory:
    row = Memory.objects.filter(agent=agent, note=note, current=True).first() if "\x00" not in note else None
    if row is None:
        raise _unknown(agent, note)
    return row


def _unknown(agent: str, note: str) -> Refused:
    return Refused("unknown_note", f"{agent} has no note {note!r:.60}. List them with GET /api/agents/{agent}/memory.")


def _text(text: str) -> str:
    safe = make_safe(text).text.strip()
    if not safe:
        raise Refused("empty_note", "A note needs some text.")
    if len(safe) > LONGEST_NOTE:
        raise Refused("note_too_long", f"A note has at most {LONGEST_NOTE} characters; this one has {len(safe)}.")
    return safe


def _insert(agent: str, text: str, *, by: str, call: str | None) -> Memory:
    now = timezone.now()
    return Memory.objects.create(
        note=new_id(),
        agent=agent,
        text=text,
        author=by,
        created_at=now,
        changed_by=by,
        changed_at=now,
        call=call,
    )
