"""What people do about an incident, by the word of the act: one table for the page and the API."""

from collections.abc import Callable, Mapping
from datetime import datetime

from agents.policy.redaction import make_safe
from control.accounts.models import User
from control.incidents import cases
from control.incidents.cases import CannotBe
from control.incidents.models import Incident

# (incident, what was given, by, now) -> whether anything changed
Act = Callable[[Incident, Mapping[str, str], str, datetime], bool]


def said(text: str) -> str:
    """What a person typed, as every database can hold it, with secrets hidden."""
    return make_safe(text).text.strip()


def _acknowledge(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    return cases.acknowledge(incident, by, now)


def _assign(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    to = said(given.get("to", ""))[:150]
    if to and not User.objects.filter(username=to, is_active=True).exists():
        raise CannotBe("unknown_person", f"There is nobody called “{to[:60]}” here. Leave it empty for nobody.")
    return cases.assign(incident, to, by, now)


def _comment(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    cases.comment(incident, said(given.get("text", "")), by, now)
    return True


def _snooze(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    cases.snooze(incident, given.get("term", ""), by, now)
    return True


def _wake(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    return cases.wake(incident, by, now)


def _resolve(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    return cases.resolve(incident, now, by=by, text=said(given.get("text", "")))


def _reopen(incident: Incident, given: Mapping[str, str], by: str, now: datetime) -> bool:
    return cases.reopen(incident, by, now)


ACTS: Mapping[str, Act] = {
    "acknowledge": _acknowledge,
    "assign": _assign,
    "comment": _comment,
    "snooze": _snooze,
    "wake": _wake,
    "resolve": _resolve,
    "reopen": _reopen,
}
