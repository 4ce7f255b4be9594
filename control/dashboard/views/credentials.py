"""Credentials: how each key fares and what it has spent, never the key; and letting one rest or waking it by hand."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from agents.events import stamp
from agents.policy.credentials import Health, KeyState, Rest, rest_of
from agents.spec import ACTIVE
from control.accounts import audit
from control.dashboard import rooms
from control.dashboard.states import State
from control.fleet import credentials, pool
from control.fleet.credentials import Credential, CredentialError
from control.fleet.models import Agent, CredentialState
from control.runs.models import Run

TERMS = {"15m": (900, "15 minutes"), "1h": (3600, "an hour"), "8h": (8 * 3600, "8 hours"), "7d": (7 * 86400, "a week")}

WELL = State(word="Well", icon="check", colour="completed")
RESTING = State(word="Resting", icon="waiting", colour="waiting")
SPENT = State(word="Limit spent", icon="hourglass", colour="exhausted")
KEYLESS = State(word="No key here", icon="cross", colour="failed")
DEAD = State(word="Dead", icon="cross", colour="failed")
REASONS = {
    "rate_limit": "the provider limited its rate",
    "billing": "the provider says its money is used up",
    "auth": "the provider refuses it",
    "operator": "a person let it rest",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One key as the pool sees it. `share` of its limit, None without one; `keyless`: what is missing where its key
    should be."""

    credential: Credential
    state: State
    key: KeyState
    rest: Rest | None
    total: Decimal
    share: float | None
    why: str
    keyless: str
    agents: list[str]
    runs: int

    @property
    def where(self) -> str:
        if self.credential.key_env:
            return f"environment {self.credential.key_env}"
        return f"file {self.credential.key_file}"


def _row(one: Credential, seen: pool.Seen, now: datetime, agents: dict[str, list[str]], runs: Counter[str]) -> Row:
    key, rest = seen.state, rest_of(seen.state, now)
    spent = key.limit_usd is not None and key.spent_usd >= key.limit_usd
    keyless = _keyless(one)
    well = KEYLESS if keyless else WELL
    state = well if rest is None else DEAD if key.health is Health.DEAD else SPENT if spent else RESTING
    limit = key.limit_usd
    return Row(
        credential=one,
        state=state,
        key=key,
        rest=rest,
        total=seen.total_usd,
        share=float(key.spent_usd / limit) if limit else (1.0 if spent else None),
        why=REASONS.get(key.reason or "", (key.reason or "").replace("_", " ")) if rest is not None else "",
        keyless=keyless,
        agents=agents.get(one.label, []),
        runs=runs[one.label],
    )


def _keyless(one: Credential) -> str:
    """Whether this process finds a key there; what it is stays where it is."""
    try:
        one.read_key()
    except CredentialError as error:
        return error.message
    return ""


def _known() -> tuple[dict[str, Credential], str]:
    try:
        return credentials.all_of(), ""
    except CredentialError as error:
        return {}, error.message


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    known, problem = _known()
    found, now = pool.seen(list(known.values())) if known else ({}, None)
    agents: dict[str, list[str]] = {}
    for name, label in Agent.objects.filter(current=True).exclude(credential="").values_list("name", "credential"):
        agents.setdefault(label, []).append(name)
    active = Run.objects.filter(status__in=[status.value for status in ACTIVE])
    runs = Counter(label for label in active.values_list("spec__model__credential", flat=True) if label)
    rows = [_row(one, found[label], now, agents, runs) for label, one in known.items() if now is not None]
    strangers = CredentialState.objects.exclude(label__in=list(known)).order_by("label")[:50]
    context: dict[str, Any] = {
        "section": "credentials",
        "rows": rows,
        "problem": problem,
        "strangers": [{"row": row, "total": Decimal(row.spent_nano) / pool.NANO} for row in strangers],
        "terms": [(term, word) for term, (_, word) in TERMS.items()],
        "resting": sum(row.rest is not None for row in rows),
    }
    return render(request, "credentials/list.html", context)


@login_required
@require_POST
def change(request: HttpRequest, label: str) -> HttpResponse:
    """Let a key rest for a while (`do=rest`, `term`), or say that it is good again (`do=wake`)."""
    wakes = request.POST.get("do") == "wake"
    verb, target = "revive_credential" if wakes else "rest_credential", f"credential:{label[:100]}"
    if answer := rooms.refused(request, verb, target, "/credentials/"):
        return answer
    reason = request.POST.get("reason", "").replace("\x00", "").strip()[:500] or None
    seconds, word = TERMS.get(request.POST.get("term", ""), (0, ""))
    if not wakes and not seconds:
        audit.record(request, verb, target, reason=reason, result="bad_term")
        return rooms.told(request, "Choose for how long it shall rest.", "credentials", good=False)
    known, _ = _known()
    if label not in known:
        audit.record(request, verb, target, reason=reason, result="unknown_credential")
        return rooms.told(request, "There is no credential of this label any more.", "credentials", good=False)
    before, after = pool.revive(known[label]) if wakes else pool.lay_aside(known[label], seconds)
    changed = before != after
    result = "ok" if changed else "unchanged"
    audit.record(request, verb, target, reason=reason, before=_audited(before), after=_audited(after), result=result)
    if not changed:
        text = "was well already" if wakes else "is dead or rests longer already; nothing was changed"
        return rooms.told(request, f"{label} {text}.", "credentials")
    text = "is used again. Runs that wait for it go on at their time, or by Go on" if wakes else f"rests for {word}"
    return rooms.told(request, f"{label} {text}.", "credentials")


def _audited(key: KeyState) -> dict[str, Any]:
    until = key.cooldown_until
    return {"health": key.health.value, "reason": key.reason, "until": stamp(until) if until else None}
