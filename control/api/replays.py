"""Routes of replays: play an ended run again, and see where it comes otherwise; a run as a regression test."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.checks import check_policy
from control.api.errors import ApiError, not_found
from control.api.finding import find_run
from control.api.outputs import Out, StartedOut
from control.api.schemas import Body, Clean, Name, Plain
from control.incidents import regression, replaying
from control.runs import replays
from control.runs.inbox import NotFound
from control.runs.selection import as_id

router = Router(tags=["replays"])

Word = Annotated[Clean, Field(min_length=1, max_length=500)]


class ReplayIn(Body):
    """`policy`: a name, or a policy's own data; left out it is the original's as it was frozen. What stands from `live`
    on is for a live replay, which needs `base_url` and `model`; it is dry unless `dry_run` is false."""

    policy: Name | Plain | None = None
    from_turn: Annotated[int | None, Field(ge=1, le=100_000)] = None
    live: bool = False
    base_url: Word | None = None
    model: Word | None = None
    credential: Word | None = None
    branch: Word | None = None
    dry_run: bool = True


class ComparedOut(Out):
    """`same`: so many steps from the first on; `diverged`: where it comes otherwise, null while all is the same."""

    of: str
    mode: str
    from_turn: int | None
    steps: int
    same: int
    over: bool
    diverged: dict[str, Any] | None


def asked(given: ReplayIn) -> replays.Replay:
    if given.policy is not None and not isinstance(given.policy, str):
        check_policy({name: value for name, value in given.policy.items() if name != "name"})
    return replays.Replay(**given.dict())


def replayed(run_id: str, given: replays.Replay, by: str) -> Done:
    """The same for the API and the command line."""
    known = as_id(run_id)
    if known is None:
        raise not_found("run", run_id)
    try:
        run = replays.replay(known, given, by=by)
    except NotFound as error:
        raise not_found("run", run_id) from error
    policy = given.policy if isinstance(given.policy, str) or given.policy is None else given.policy.get("name", "own")
    after = {"run": run.pk, "live": given.live, "policy": policy, "credential": given.credential}
    if given.live:
        after |= {"base_url": given.base_url, "model": given.model, "dry_run": given.dry_run, "branch": given.branch}
    body = {"id": run.pk, "status": run.status, "url": f"/runs/{run.pk}/"}
    return Done(body=body, status=201, target=f"run:{known}", after=after)


@router.post("/runs/{run_id}/replay", auth=Needs("replay"), response={201: StartedOut}, summary="Play a run again")
def replay(request: HttpRequest, run_id: str, payload: ReplayIn | None = None) -> HttpResponse:
    """A new run with `replay_of`. It plays the recorded answers, or asks a scratch model (`live`), under this or
    another policy, with the fuses of the original. No key goes along that is not named."""
    wanted = asked(payload or ReplayIn())
    act = Act(action="replay", target=f"run:{run_id[:60]}")
    return perform(request, act, lambda: replayed(run_id, wanted, actor_of(request).name))


@router.get("/runs/{run_id}/replay", auth=Needs("view"), response=ComparedOut, summary="Where a replay parts")
def compared(request: HttpRequest, run_id: str) -> HttpResponse:
    found = replaying.compare(find_run(run_id))
    if found is None:
        raise ApiError("no_replay", "This run is no replay. Start one with POST /api/runs/{id}/replay.", status=404)
    return answer(found)


@router.get("/runs/{run_id}/regression.zip", auth=Needs("view"), summary="The run as a test of its fuse")
def exported(request: HttpRequest, run_id: str, policy: Name | None = None) -> HttpResponse:
    """A fixture, a policy and a test for pytest that needs nothing but `python -m agents judge`: it fails when the
    policy does not stop the run at that step any more. `policy`: another than the run's own. 409 `no_trip` where that
    policy would not have stopped it."""
    run = find_run(run_id)
    made = regression.export(run, policy)
    response = HttpResponse(made.zipped(), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{made.name}.zip"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
