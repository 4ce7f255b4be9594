"""Routes of runs: start, list, look at one, read its log."""

from collections.abc import Mapping
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from control.api import sequence
from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer, dumps, raw
from control.api.auth import Needs
from control.api.errors import ApiError
from control.api.finding import find_run
from control.api.outputs import EventsOut, RunDetailOut, RunsOut, StartedOut
from control.api.schemas import Clean, StartIn
from control.runs import log, rows, starts
from control.runs.selection import Selection, page

router = Router(tags=["runs"])

Word = Annotated[Clean | None, Field(max_length=500)]
Limit = Annotated[int, Field(ge=1, le=200)]
EventLimit = Annotated[int, Field(ge=1, le=5000)]
Seq = Annotated[int, Field(ge=0, le=2_000_000_000)]


def start_request(given: Mapping[str, Any]) -> starts.StartRequest:
    """A StartRequest from the fields of the contract; what is None takes its default."""
    return starts.StartRequest(**{name: value for name, value in given.items() if value is not None})


@router.post("/runs", auth=Needs("start"), response={201: StartedOut}, summary="Start a run")
def start(request: HttpRequest, payload: StartIn) -> HttpResponse:
    given = payload.dict(exclude={"limits"}) | {"limits": payload.limits.given() if payload.limits else {}}

    def work() -> Done:
        run = starts.start(start_request(given), by=actor_of(request).name)
        body = {"id": run.pk, "status": run.status, "url": f"/runs/{run.pk}/"}
        return Done(body=body, status=201, target=f"run:{run.pk}", after={"agent": run.agent, "status": run.status})

    return perform(request, Act(action="start", target=f"agent:{payload.agent}"), work)


@router.get("/runs", auth=Needs("view"), response=RunsOut, summary="List runs, newest first")
def list_runs(
    request: HttpRequest,
    status: Word = None,
    agent: Word = None,
    label: Word = None,
    project: Word = None,
    q: Word = None,
    cursor: Word = None,
    limit: Limit = 50,
) -> HttpResponse:
    """`status` and `agent` may list several, separated by commas. `label` is `key` or `key=value`."""
    chosen = Selection.of(status=status, agent=agent, label=label, project=project, q=q)
    found, following = page(chosen.runs(), cursor, limit)
    return answer({"runs": [rows.run_row(run) for run in found], "next": following})


@router.get(
    "/runs/{run_id}", auth=Needs("view"), response=RunDetailOut, summary="One run with fuses, commands and tree"
)
def detail(request: HttpRequest, run_id: str) -> HttpResponse:
    return answer(rows.run_detail(find_run(run_id)))


@router.get("/runs/{run_id}/events", auth=Needs("view"), response=EventsOut, summary="Read a run's log from a cursor")
def events(request: HttpRequest, run_id: str, after: Seq = 0, limit: EventLimit = 500) -> HttpResponse:
    """`after` is the last `seq` you have; ask again with the last one you got. 0 reads from the start."""
    run = find_run(run_id)
    if after > run.last_seq:
        message = (
            f"The log ends at {run.last_seq}; {after} is ahead of it. Read again from a cursor that you were given."
        )
        raise ApiError("cursor_ahead", message, status=400, detail={"last_seq": run.last_seq, "after": after})
    bodies = log.read_after(run.pk, after, limit)
    last_seq, epoch = log.head(run.pk)
    return raw(b'{"events":[%b],"last_seq":%d,"epoch":%d}' % (b",".join(bodies), last_seq, epoch))


@router.get("/runs/{run_id}/calls.jsonl", auth=Needs("view"), summary="The run as a recorded call sequence")
def calls(request: HttpRequest, run_id: str) -> HttpResponse:
    """One line of JSON: `{id, calls: [{tool, args, result, is_error, batch, ...}]}`, in the order of asking."""
    run = find_run(run_id)
    return raw(dumps(sequence.of_run(run.pk)) + b"\n", content_type="application/jsonl; charset=utf-8")
