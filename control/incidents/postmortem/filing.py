"""A document as it stands: the report folded from the log now, and the rows of what people added."""

import threading
from collections import OrderedDict

from control.incidents.models import ActionItem, Postmortem
from control.incidents.postmortem.document import Action, Document, Written
from control.incidents.postmortem.fold import report_of
from control.incidents.postmortem.reader import circumstances_of, facts_of
from control.incidents.postmortem.report import Report
from control.runs.models import Run

# Reports of late, by all that they are made from: whoever edits a postmortem looks at it again and again.
_KEPT = 8
_reports: OrderedDict[tuple[str, int, str], Report] = OrderedDict()
_held = threading.Lock()  # guards the order of `_reports`


def document_of(run: Run, site: str = "") -> Document:
    """Raises NotFinished for a run whose log has no last event."""
    return Document(report=_report(run), written=written_of(run.pk), site=site.rstrip("/"))


def _report(run: Run) -> Report:
    around = circumstances_of(run)
    key = run.pk, run.last_seq, repr(around)
    with _held:
        found = _reports.get(key)
        if found is not None:
            _reports.move_to_end(key)
            return found
    made = report_of(facts_of(run, around))
    with _held:
        _reports[key] = made
        while len(_reports) > _KEPT:
            _reports.popitem(last=False)
    return made


def written_of(run: str) -> Written:
    """What people added; the defaults where nobody has yet."""
    row = Postmortem.objects.filter(pk=run).first()
    if row is None:
        return Written()
    return Written(
        state=row.state,
        severity=row.severity,
        owner=row.owner,
        due=row.due,
        texts={name: (str(one["text"]), int(one["number"])) for name, one in row.texts.items()},
        struck=frozenset(row.struck),
        added=tuple(row.added),
        actions=tuple(map(_action, row.actions.order_by("created_at", "id"))),
    )


def _action(row: ActionItem) -> Action:
    return Action(
        id=row.pk,
        kind=row.kind,
        text=row.text,
        owner=row.owner,
        link=row.link,
        due=row.due,
        done=row.done_at is not None,
    )
