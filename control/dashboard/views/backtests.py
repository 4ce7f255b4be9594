"""The pages of backtests: ask, watch, look at what came out; and the limits that healthy runs suggest."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from control.accounts import audit
from control.accounts.roles import of_request
from control.dashboard import bulk_form, policy_refs, rooms
from control.dashboard.views.policies import base
from control.incidents import suggestions
from control.incidents.backtest import asking, results
from control.incidents.backtest.figures import WORDS
from control.incidents.models_backtest import Backtest
from control.runs.refusals import StartRefused
from control.runs.selection import as_id

LISTED = 30
MOST_DAYS = 3650
_MARGINS = ((0.25, "a quarter"), (0.5, "a half"), (1.0, "as much again"))
_QUANTILES = ((0.9, "90 %"), (0.95, "95 %"), (0.99, "99 %"))


@login_required
def ask(request: HttpRequest) -> HttpResponse:
    """The form, and the last backtests."""
    typed = {name: request.POST.get(name, request.GET.get(name, ""))[:300] for name in ("a", "b", "days", "limit")}
    source = request.POST if request.method == "POST" else request.GET
    filter = bulk_form.given(source, source.getlist("ids"))
    problem = ""
    if request.method == "POST":
        if answer := rooms.refused(request, "backtest", "runs", "/policies/"):
            return answer
        made, problem = _asked(request, typed, filter)
        if made is not None:
            return redirect("backtest", backtest_id=made.pk)
    context = {
        "choices": policy_refs.SIDES.choices(),
        "sides": [("a", typed["a"] or "default"), ("b", typed["b"])],
        "typed": typed,
        "filter": filter,
        "ids": ", ".join(filter.get("ids", [])),
        "problem": problem,
        "may_ask": rooms.may(request, "backtest"),
        "backtests": [_line(row) for row in Backtest.objects.order_by("-created_at")[:LISTED]],
    }
    page = {**base(request), **context}
    return render(request, "policies/backtest.html", page, status=400 if problem else 200)


def _asked(request: HttpRequest, typed: dict[str, str], filter: dict[str, Any]) -> tuple[Backtest | None, str]:
    """The backtest, or what is wrong with the form."""
    chosen, problem = bulk_form.chosen({"all": True, **filter})
    if chosen is None:
        return None, problem
    policies: list[Any] = []
    for ref in (typed["a"], typed["b"]):
        side = policy_refs.SIDES.side(ref[:140]) if ref else None
        if ref and side is None:
            return None, f"There is no policy {ref}."
        if side is not None:
            policies.append({**side.body, "name": side.word})
    days, limit = _number(typed["days"], MOST_DAYS), _number(typed["limit"], asking.MOST_RUNS)
    actor = of_request(request)
    assert actor is not None
    wanted = asking.Question(policies=policies, chosen=chosen, days=days, limit=limit or 10_000)
    try:
        with transaction.atomic():
            made = asking.ask(wanted, by=actor.name)
            names = [policy["name"] for policy in made.policies]
            after = {"policies": names, "runs": made.total}
            audit.record(request, "backtest", f"backtest:{made.pk}", filter=wanted.as_json(), after=after)
    except StartRefused as error:
        audit.record(request, "backtest", "runs", filter=wanted.as_json(), result=error.code)
        return None, error.message
    return made, ""


def _number(text: str, most: int) -> int | None:
    return min(int(text), most) if text.isascii() and text.isdigit() and int(text[:9]) > 0 else None


def _line(made: Backtest) -> dict[str, Any]:
    done = made.total if made.state == Backtest.State.DONE else asking.progress(made)["done"]
    return {
        "row": made,
        "names": [policy["name"] for policy in made.policies],
        "words": words(made),
        "share": done / max(made.total, 1),
    }


def words(made: Backtest) -> str:
    """Which runs it is about."""
    told = bulk_form.words(made.filter)
    days = made.filter.get("days")
    return f"{told}, last {days} days" if days else told


@login_required
def one(request: HttpRequest, backtest_id: str) -> HttpResponse:
    """How far it is, policy beside policy, and the runs that the chosen one would have touched."""
    made = find(backtest_id)
    told = results.told(made)
    place = min(_number(request.GET.get("policy", ""), len(made.policies) - 1) or 0, len(made.policies) - 1)
    outcome = request.GET.get("outcome", "")
    healthy = {"1": True, "0": False}.get(request.GET.get("healthy", ""))
    cursor = as_id(request.GET.get("after", "")) or ""
    runs, following = results.runs(made, place=place, outcome=outcome or None, healthy=healthy, after=cursor)
    context = {
        "made": made,
        "told": told,
        "words": words(made),
        "rows": _rows(told["policies"]),
        "place": place,
        "outcome": outcome if outcome in WORDS else "",
        "outcomes": WORDS,
        "healthy": request.GET.get("healthy", ""),
        "runs": runs,
        "known": asking.first_runs([row["run"] for row in runs]),
        "next": following,
        "rules": [sorted(policy["rules"].items(), key=lambda item: -item[1]) for policy in told["policies"]],
        "may_ask": rooms.may(request, "backtest"),
        "seconds": ((made.finished_at or made.created_at) - made.created_at).total_seconds(),
    }
    return render(request, "policies/backtest_one.html", {**base(request), **context})


_FIGURES = (
    ("runs", "Runs judged", "count"),
    ("stopped", "Would have been stopped", "stopped"),
    ("blocked", "Calls blocked, not stopped", "blocked"),
    ("observed", "Only observed", "observed"),
    ("untouched", "Not a word", "count"),
    ("healthy.stopped", "Completed runs stopped", "bad"),
    ("healthy.blocked", "Completed runs with a blocked call", "bad"),
    ("blocked_calls", "Calls refused", "count"),
    ("stubbed_calls", "Answers cut to “unchanged”", "count"),
    ("saved_calls", "Tool calls never made", "good"),
    ("saved_model_calls", "Model calls never made", "good"),
    ("saved_tokens", "Tokens saved", "good"),
    ("saved_usd", "Money saved", "money"),
)


def _rows(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table: one row per figure, one cell per policy."""

    def cell(policy: dict[str, Any], name: str) -> Any:
        room, _, part = name.partition(".")
        return policy[room][part] if part else policy[room]

    return [
        {"word": word, "kind": kind, "name": name, "cells": [cell(policy, name) for policy in policies]}
        for name, word, kind in _FIGURES
    ]


@login_required
@require_POST
def cancel(request: HttpRequest, backtest_id: str) -> HttpResponse:
    """Judge no further run."""
    back = f"/policies/-/backtest/{backtest_id}/"
    if answer := rooms.refused(request, "backtest", f"backtest:{backtest_id}", back):
        return answer
    made = find(backtest_id)
    actor = of_request(request)
    assert actor is not None
    changed, why = asking.cancel(made, actor.name)
    audit.record(request, "cancel_backtest", f"backtest:{made.pk}", result=why or "ok")
    text = "Ended midway; what is judged stays." if changed else "It was over already."
    return rooms.told(request, text, back, good=changed)


def find(backtest_id: str) -> Backtest:
    made = asking.known(str(backtest_id))
    if made is None:
        raise Http404("There is no backtest of this id.")
    return made


# --- limits from healthy runs ----------------------------------------------------------------------------------------


@login_required
def suggest(request: HttpRequest) -> HttpResponse:
    """Per agent: how its completed runs are spread, and a draft of a policy one click away."""
    days = _number(request.GET.get("days", ""), MOST_DAYS) or 30
    quantile = _choice(request.GET.get("quantile", ""), _QUANTILES, 0.99)
    margin = _choice(request.GET.get("margin", ""), _MARGINS, 0.5)
    found = suggestions.suggest(suggestions.Asked(days=days, quantile=quantile, margin=margin))
    context = {
        "days": days,
        "quantile": quantile,
        "margin": margin,
        "quantiles": _QUANTILES,
        "margins": _MARGINS,
        "items": [{"found": one, "name": f"{one.agent}-limits"[:100], "toml": one.toml()} for one in found],
        "names": suggestions.WORDS,
    }
    return render(request, "policies/suggest.html", {**base(request), **context})


def _choice(text: str, choices: tuple[tuple[float, str], ...], otherwise: float) -> float:
    return next((value for value, _ in choices if f"{value:g}" == text), otherwise)
