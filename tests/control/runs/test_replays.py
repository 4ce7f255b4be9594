"""Replays by a real worker: recorded, under a stricter policy, with a scratch model; and what is refused."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.spec import Status
from control.fleet.agents import ensure_default
from control.fleet.policies import ensure_shipped
from control.incidents import replaying
from control.runs import replays, specs
from control.runs.models import Command, Run
from control.runs.refusals import NotFound, StartRefused
from control.runs.replays import Replay
from tests.control.records import make_run
from tests.control.runs.processes import House, events, reach, row, until
from tests.scripted_server import ask_tools, say

MakeHouse = Callable[..., House]
ASK = ask_tools(("run_command", {"command": "cat gone.txt"}))


def results(request: Any) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def again(house: House, run: str, **given: Any) -> Run:
    made = replays.replay(run, Replay(**given), by="ann")
    house.publish(made.pk)
    return made


def git(path: Path, *words: str) -> str:
    command = ["git", "-C", str(path), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def test_a_recorded_run_plays_again_without_its_model_and_parts_where_the_stricter_policy_stops_it(
    make_house: MakeHouse,
) -> None:
    asked: list[Any] = []

    def script(request: Any) -> Any:
        asked.append(request)
        return ASK if len(results(request)) < 5 else say("I give up.")

    house = make_house(script)
    house.worker()
    run = house.begin(policy="off")
    reach(run, "completed")
    before = len(asked)

    same = again(house, run)
    reach(same.pk, "completed")
    found = replaying.compare(row(same.pk))
    assert found is not None and (found["same"], found["diverged"], found["over"]) == (5, None, True)

    strict = again(house, run, policy="strict")
    assert reach(strict.pk, "tripped").exit_reason == "fuse:max_identical_calls"
    found = replaying.compare(row(strict.pk))
    assert found is not None and found["diverged"]["step"] == 3 and found["same"] == 2
    assert "refused by max_identical_calls" in found["diverged"]["why"]

    later = again(house, run, policy="strict", from_turn=4)
    reach(later.pk, "completed")
    found = replaying.compare(row(later.pk))
    assert found is not None and (found["from_turn"], found["steps"], found["diverged"]) == (4, 2, None)
    assert len(asked) == before, "no model is asked for what is recorded"
    assert {row(one.pk).replay_of for one in (same, strict, later)} == {run}


def test_a_live_replay_asks_the_scratch_model_without_a_key_dry_and_on_another_branch(
    make_house: MakeHouse, tmp_path: Path, settings: Any
) -> None:
    repository = tmp_path / "code"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    (repository / "a.txt").write_text("one\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "first")
    write = ask_tools(("write_file", {"path": "a.txt", "content": "two\n"}))
    house = make_house(lambda request: say("done") if results(request) else write, WORKSPACE_ROOTS=str(tmp_path))
    settings.WORKSPACE_ROOTS = [tmp_path]
    house.worker()
    run = house.begin(workspace=str(repository), limits={"max_steps": 7}, branch="work")
    reach(run, "completed")
    until(lambda: git(repository, "show", "work:a.txt") == "two", what="the work is on its branch")

    live = again(house, run, live=True, base_url=house.model_url, model="scratch", branch="trial")
    spec = specs.of(live)
    assert (spec.dry_run, spec.model.keyless, spec.model.model, spec.workspace and spec.workspace.branch) == (
        True,
        True,
        "scratch",
        "trial",
    )
    assert spec.limits.max_steps is not None and (spec.limits.max_steps.value, spec.limits.max_steps.source) == (
        7,
        "request",
    )
    reach(live.pk, "completed")
    told = [e["data"] for e in events(live.pk) if e["kind"] == "call.completed" and e["data"]["name"] == "write_file"]
    assert [one["status"] for one in told] == ["dry_run"]
    assert git(repository, "show", "main:a.txt") == "one" and "work" not in git(repository, "branch", "--list", "trial")


@pytest.fixture
def ended(db: None, quiet: None, settings: Any) -> Run:
    settings.DRILL_URL_GIVEN = True
    ensure_shipped()
    ensure_default()
    from control.runs import starts

    run = starts.start(starts.StartRequest(agent="default", task="do it"), by="ann")
    Run.objects.filter(pk=run.pk).update(status=Status.COMPLETED.value)
    return run


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"live": True, "base_url": "http://127.0.0.1:9/v1"}, "no_scratch_model"),
        ({"model": "other"}, "not_live"),
        ({"dry_run": False}, "not_live"),
        ({"branch": "b"}, "not_live"),
        ({"policy": "nosuch"}, "unknown_policy"),
        ({"from_turn": 9}, "no_such_turn"),
        ({"live": True, "base_url": "ftp://x", "model": "m"}, "bad_base_url"),
        ({"live": True, "base_url": "http://127.0.0.1:9/v1", "model": "m", "credential": "prod"}, "unknown_credential"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(
    ended: Run, given: dict[str, Any], code: str, settings: Any
) -> None:
    settings.ALLOWED_BASE_URLS = ["http://127.0.0.1:9/v1"]
    before = Run.objects.count()
    with pytest.raises(StartRefused) as refused:
        replays.replay(ended.pk, Replay(**given), by="ann")
    assert refused.value.code == code
    assert Run.objects.count() == before


def test_a_run_that_goes_on_is_not_replayed_and_one_that_is_not_there_not_found(ended: Run) -> None:
    with pytest.raises(StartRefused, match="once it has ended"):
        replays.replay(make_run().pk, Replay(), by="ann")
    with pytest.raises(NotFound):
        replays.replay("0" * 36, Replay(), by="ann")
    assert not Command.objects.exists()


def test_a_policy_takes_the_place_of_the_originals_and_other_limits_stay(ended: Run) -> None:
    from control.runs import starts

    request = starts.StartRequest(agent="default", task="t", policy="strict", limits={"max_steps": 40, "max_cost": "1"})
    run = starts.start(request, by="ann")
    Run.objects.filter(pk=run.pk).update(status=Status.TRIPPED.value)
    limits = specs.of(replays.replay(run.pk, Replay(policy="ladder"), by="ann")).limits
    assert limits.max_steps is None or limits.max_steps.source == "request"
    assert limits.max_tokens is None
    assert limits.max_cost is not None and (str(limits.max_cost.value), limits.max_cost.source) == ("1", "request")
