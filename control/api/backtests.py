"""Routes of backtests and of limits suggested from healthy runs."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import not_found
from control.api.outputs import ChangedOut, Out
from control.api.schemas import Body, Clean, Plain
from control.incidents import suggestions
from control.incidents.backtest import asking, results
from control.incidents.models_backtest import Backtest
from control.incidents.suggestions import Asked
from control.runs.selection import Selection, as_id

router = Router(tags=["backtests"])
LISTED = 100

Word = Annotated[Clean | None, Field(max_length=500)]
Days = Annotated[int | None, Field(ge=1, le=3650)]
Share = Annotated[float, Field(gt=0.5, lt=1)]
Margin = Annotated[float, Field(ge=0, le=10)]


class RunsIn(Body):
    """Which runs: the filter of `GET /api/runs`, or `ids`."""

    ids: list[Clean] | None = None
    status: Word = None
    agent: Word = None
    label: Word = None
    project: Word = None
    q: Word = None


class BacktestIn(Body):
    """`policies`: one to four, each a name or a policy's own data with a `name`."""

    policies: Annotated[list[Clean | Plain], Field(min_length=1, max_length=asking.MOST_POLICIES)]
    filter: RunsIn = RunsIn()
    days: Days = None
    limit: Annotated[int, Field(ge=1, le=asking.MOST_RUNS)] = 10_000


class BacktestOut(Out):
    """`policies`: one object each, in the order asked for: runs by what would have become of them, and what a stop
    would have saved. `healthy` counts those that had completed."""

    id: str
    state: Literal["running", "done", "cancelled", "failed"]
    filter: dict[str, Any]
    total: int
    left_out: int
    done: int
    share: float
    failed: int
    policies: list[dict[str, Any]]


class BacktestsOut(Out):
    backtests: list[BacktestOut]


class TouchedOut(Out):
    """`next` goes into `after` for the following ones."""

    runs: list[dict[str, Any]]
    next: str | None


class SuggestionsOut(Out):
    agents: list[dict[str, Any]]


def question(given: BacktestIn) -> asking.Question:
    chosen = Selection.of(**{"all": True, **given.filter.dict()})
    return asking.Question(policies=given.policies, chosen=chosen, days=given.days, limit=given.limit)


def asked(given: asking.Question, by: str) -> Done:
    """The same for the API and the command line."""
    made = asking.ask(given, by)
    names = [policy["name"] for policy in made.policies]
    after = {"backtest": made.pk, "policies": names, "runs": made.total}
    return Done(body=results.told(made), target=f"backtest:{made.pk}", after=after)


@router.post("/backtests", auth=Needs("backtest"), response={202: BacktestOut}, summary="Try policies on old runs")
def ask(request: HttpRequest, payload: BacktestIn) -> HttpResponse:
    """What each policy would have observed, blocked and stopped, and which completed runs it would have touched. The
    desk does the work; `GET /api/backtests/{id}` tells how far it is."""
    wanted = question(payload)
    act = Act(action="backtest", target="runs", filter=wanted.as_json())
    return perform(request, act, lambda: asked(wanted, actor_of(request).name))


@router.get("/backtests", auth=Needs("view"), response=BacktestsOut, summary="Backtests, newest first")
def listed(request: HttpRequest) -> HttpResponse:
    rows = Backtest.objects.order_by("-created_at")[:LISTED]
    return answer({"backtests": [results.told(made) for made in rows]})


@router.get("/backtests/{backtest_id}", auth=Needs("view"), response=BacktestOut, summary="How a backtest comes out")
def one(request: HttpRequest, backtest_id: str) -> HttpResponse:
    return answer(results.told(find(backtest_id)))


@router.get("/backtests/{backtest_id}/runs", auth=Needs("view"), response=TouchedOut, summary="The runs it touches")
def touched(
    request: HttpRequest,
    backtest_id: str,
    policy: Annotated[int, Field(ge=0, lt=asking.MOST_POLICIES)] = 0,
    outcome: Literal["observed", "blocked", "stopped"] | None = None,
    healthy: bool | None = None,
    after: str = "",
) -> HttpResponse:
    """`policy`: its place in the list, from 0. `healthy=true`: only runs that had completed."""
    cursor = as_id(after) or ""
    page, following = results.runs(find(backtest_id), place=policy, outcome=outcome, healthy=healthy, after=cursor)
    return answer({"runs": page, "next": following})


@router.delete("/backtests/{backtest_id}", auth=Needs("backtest"), response=ChangedOut, summary="End it midway")
def cancel(request: HttpRequest, backtest_id: str) -> HttpResponse:
    act = Act(action="cancel_backtest", target=f"backtest:{backtest_id[:60]}")
    return perform(request, act, lambda: cancelled(backtest_id, actor_of(request).name))


def cancelled(backtest_id: str, by: str) -> Done:
    """What is judged stays; 200 `{changed: false}` once it is over."""
    changed, why = asking.cancel(find(backtest_id), by)
    return Done(body={"changed": changed, "reason": why}, status=200, result=why or "ok")


def find(given: str) -> Backtest:
    known = as_id(given)
    made = asking.known(known) if known else None
    if made is None:
        raise not_found("backtest", given)
    return made


@router.get("/suggestions", auth=Needs("view"), response=SuggestionsOut, summary="Limits that healthy runs suggest")
def suggested(
    request: HttpRequest,
    agent: Word = None,
    days: Annotated[int, Field(ge=1, le=3650)] = 30,
    quantile: Share = 0.99,
    margin: Margin = 0.5,
) -> HttpResponse:
    """Per agent: how turns, steps, tokens, cost and seconds of its completed runs are spread, the limit that lies the
    margin above the quantile, and a policy with these limits, as data and as TOML. `warning` says when there are too
    few runs to go by."""
    wanted = Asked(agent=agent, days=days, quantile=quantile, margin=margin)
    return answer({"agents": [one.as_json() for one in suggestions.suggest(wanted)]})
