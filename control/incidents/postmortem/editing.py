"""How people change a postmortem: one function per act. Each change leaves a revision; a closed one changes no more."""

from collections.abc import Collection, Iterable
from datetime import date, datetime

from django.db import IntegrityError, transaction
from django.utils.dateparse import parse_date

from agents.policy.redaction import make_safe
from control.incidents.models import ActionItem, Postmortem, PostmortemRevision, Severity
from control.incidents.postmortem.document import SECTIONS, STATES
from control.runs.models import Run

LONGEST, LONGEST_LINE, MOST_ACTIONS, MOST_ADDED = 20_000, 500, 100, 30
_OTHERS = ("state", "head", "factors")


class Refused(Exception):
    """`code` is stable, the text says what to do next."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def write(run: Run, section: str, text: str, *, number: int, by: str, now: datetime) -> bool:
    """Put a text in place of what stood there; False if it is the same. `number` is the revision that it was made from,
    so that nobody overwrites what they have not seen."""
    if section not in SECTIONS:
        raise Refused("unknown_section", f"A postmortem has no section {section!r:.40}.")
    said = make_safe(text.replace("\r\n", "\n").strip()).text
    if len(said) > LONGEST:
        raise Refused("too_long", f"The text has {len(said):,} characters; at most {LONGEST:,} are kept.")
    with transaction.atomic():
        row = _open(run, by, now)
        known = row.texts.get(section) or {"text": None, "number": 0}
        if known["number"] != number:
            raise _meanwhile()
        if known["text"] == said:
            return False
        row.texts = {**row.texts, section: {"text": said, "number": number + 1}}
        _keep(row, section, said, by, now)
    return True


def move(run: Run, state: str, *, by: str, now: datetime) -> bool:
    """Draft, in review, closed; and back again, which opens it for changes."""
    if state not in STATES:
        raise Refused("unknown_state", f"A postmortem is {', '.join(STATES)}; it cannot be {state!r:.40}.")
    with transaction.atomic():
        row = _open(run, by, now, closed=True)
        if row.state == state:
            return False
        row.state = state
        row.closed_at = now if state == "closed" else None
        _keep(row, "state", STATES[state], by, now)
    return True


def head(run: Run, *, owner: str, severity: str, due: str, by: str, now: datetime) -> bool:
    """Who owns it, how grave it was ("": as the log proposes), and until when it is to be closed."""
    if severity and severity not in Severity.values:
        raise Refused("unknown_severity", f"A severity is one of {', '.join(Severity.values)}.")
    day, whose = _day(due), _line(owner, 150)
    with transaction.atomic():
        row = _open(run, by, now)
        if (row.owner, row.severity, row.due) == (whose, severity, day):
            return False
        row.owner, row.severity, row.due = whose, severity, day
        told = f"owner {whose or 'nobody'}, severity {severity or 'as proposed'}, due {day or 'not set'}"
        _keep(row, "head", told, by, now)
    return True


def factors(
    run: Run, *, proposed: Collection[str], stand: Collection[str], added: Iterable[str], by: str, now: datetime
) -> bool:
    """Which of the proposed factors stand, and which others there were."""
    struck = sorted(set(proposed) - set(stand))
    named = [said for one in added if (said := _line(one, LONGEST_LINE))][:MOST_ADDED]
    with transaction.atomic():
        row = _open(run, by, now)
        if row.struck == struck and row.added == named:
            return False
        row.struck, row.added = struck, named
        told = f"struck: {', '.join(struck) or 'none'}; added: {'; '.join(named) or 'none'}"
        _keep(row, "factors", told, by, now)
    return True


def add_action(
    run: Run, *, kind: str, text: str, owner: str, link: str, due: str, by: str, now: datetime
) -> ActionItem:
    said, where = _line(text, LONGEST_LINE), _line(link, LONGEST_LINE)
    if kind not in ActionItem.Kind.values:
        raise Refused("unknown_kind", f"An action item is to {', '.join(ActionItem.Kind.values)}.")
    if not said:
        raise Refused("empty", "Say what is to be done.")
    if where and not where.startswith(("https://", "http://")):
        raise Refused("bad_link", "A link begins with https:// or http://.")
    if any(char in where for char in '<>" '):
        raise Refused("bad_link", "A link has no blanks, quotes or angle brackets in it.")
    with transaction.atomic():
        row = _open(run, by, now)
        if row.actions.count() >= MOST_ACTIONS:
            raise Refused("too_many", f"A postmortem holds at most {MOST_ACTIONS} action items.")
        _touch(row, by, now)
        return row.actions.create(
            kind=kind, text=said, owner=_line(owner, 150), link=where, due=_day(due), created_at=now, created_by=by
        )


def finish_action(run: Run, action: str, *, done: bool, now: datetime) -> bool:
    """Also on a closed postmortem: what was promised is done afterwards."""
    rows = ActionItem.objects.filter(pk=action, postmortem_id=run.pk, done_at__isnull=done)
    return bool(rows.update(done_at=now if done else None))


def drop_action(run: Run, action: str, *, by: str, now: datetime) -> bool:
    with transaction.atomic():
        row = _open(run, by, now)
        gone, _ = row.actions.filter(pk=action).delete()
        if gone:
            _touch(row, by, now)
    return bool(gone)


def history(run: str, most: int = 200) -> list[PostmortemRevision]:
    """The newest changes first."""
    return list(PostmortemRevision.objects.filter(postmortem_id=run).order_by("-at", "-id")[:most])


def _open(run: Run, by: str, now: datetime, *, closed: bool = False) -> Postmortem:
    """The row, held for this transaction. Raises Refused if it is closed."""
    Postmortem.objects.bulk_create(
        [Postmortem(run_id=run.pk, created_at=now, changed_at=now, changed_by=by)], ignore_conflicts=True
    )
    row = Postmortem.objects.select_for_update().get(pk=run.pk)
    if row.state == Postmortem.State.CLOSED and not closed:
        raise Refused("closed", "This postmortem is closed. Set it back to draft to change it.")
    return row


def _keep(row: Postmortem, section: str, text: str, by: str, now: datetime) -> None:
    if section in _OTHERS:
        number = row.revisions.filter(section=section).count() + 1
    else:
        number = int(row.texts[section]["number"])
    try:
        with transaction.atomic():
            row.revisions.create(section=section, number=number, text=text, by=by, at=now)
    except IntegrityError as error:
        raise _meanwhile() from error
    _touch(row, by, now)


def _touch(row: Postmortem, by: str, now: datetime) -> None:
    row.changed_at, row.changed_by = now, by
    row.save()


def _meanwhile() -> Refused:
    return Refused("changed_meanwhile", "Somebody else has changed this meanwhile. Look at theirs, then save again.")


def _line(text: str, limit: int) -> str:
    return " ".join(make_safe(text).text.split())[:limit]


def _day(text: str) -> date | None:
    try:
        day = parse_date(text.strip()) if text.strip() else None
    except ValueError:
        day = None
    if text.strip() and day is None:
        raise Refused("bad_date", "Give the day as YYYY-MM-DD.")
    return day
