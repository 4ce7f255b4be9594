"""A deploy: every worker is asked to hand over and is replaced, under load; nothing is lost, nothing is done twice."""

import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from control.runs.models import Run, Worker
from tests.control.runs.processes import House, answered, events, holder_pid, kinds, lines, marked, reach, row, until
from tests.scripted_server import Response, ask_tools, say, wait

pytestmark = [pytest.mark.chaos]
MakeHouse = Callable[..., House]

STEPS = 5


def _load(journal: Path) -> Callable[[Any], Response]:
    """Roots that write a line at each step and have one sub-agent of each kind; sub-agents that write lines too."""

    def line(name: str, step: int) -> tuple[str, dict[str, str]]:
        return ("run_command", {"command": f"echo {name}:{step} >> {journal}; sleep 0.2; echo {step}"})

    def script(request: Any) -> Response:
        name = re.search(r"\[(\w+(?:-\w+)?)\]", request["messages"][1]["content"]).group(1)  # type: ignore[union-attr]
        step = len(answered(request))
        if step == STEPS:
            return say("done", before=[wait(0.2)])
        if name.startswith("root") and step in (1, 3):
            child = ("delegate", {"task": f"Do your part. [part{step}-{name}]", "detached": step == 3})
            return ask_tools(child)
        return ask_tools(line(name, step), text="Next.")

    return script


def _expected(roots: int) -> Counter[str]:
    own = [f"root{n}:{step}" for n in range(roots) for step in range(STEPS) if step not in (1, 3)]
    parts = [f"part{k}-root{n}:{step}" for n in range(roots) for k in (1, 3) for step in range(STEPS)]
    return Counter([*own, *parts])


def _wrongs(run: Run) -> list[str]:
    found = events(run.pk)
    statuses = {e["data"]["status"] for e in found if e["kind"] == "call.completed"}
    wrong = [] if [e["seq"] for e in found] == list(range(1, len(found) + 1)) else ["a gap in the log"]
    wrong += [] if run.status == "completed" else [f"it is {run.status} ({run.exit_reason})"]
    wrong += [] if kinds(run.pk).count("run.completed") == 1 else ["not one end"]
    wrong += [] if statuses == {"ok"} else [f"calls ended {statuses}"]
    return [f"{run.pk} {run.task}: {what}" for what in wrong]


def _ids() -> list[str]:
    return list(Worker.objects.filter(kind="worker", gone_at=None).order_by("started_at").values_list("pk", flat=True))


def test_all_workers_are_replaced_under_load_and_no_run_is_lost_or_done_twice(
    make_house: MakeHouse, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    house = make_house(_load(journal), DRAIN_SECONDS="20", LEASE_SECONDS="6")
    house.desk()
    old = [house.worker() for _ in range(3)]
    roots = 0
    for number, worker in enumerate(_ids()):
        house.worker()
        held, least = Run.objects.filter(worker=worker, status="running"), roots + 3
        # Whoever is first takes a run, so a few more may have to be started until this one has some.
        while roots < least or not held.exists():
            assert roots < least + 20, "the worker that is to go gets no work"
            house.begin(f"Do it. [root{roots}]", policy="off")
            roots += 1
            if roots >= least:
                time.sleep(1.0)
        if number == 1:
            old[number].send_signal(signal.SIGTERM)
        else:
            call_command("drain", worker, "--no-wait")
        assert old[number].wait(20) == 0
        assert marked("PILOTHOUSE_WORKER", worker) == []
    until(lambda: Run.objects.count() == 3 * roots, 60, "all sub-agents are started")
    for run in Run.objects.all():
        reach(run.pk, "completed", "failed", "lost", "interrupted", "tripped", within=60)
    assert [what for run in Run.objects.all() for what in _wrongs(run)] == []
    assert Counter(lines(journal)) == _expected(roots)
    handed = [e for run in Run.objects.all() for e in events(run.pk) if e["kind"] == "run.requeued"]
    assert len(handed) >= 3
    assert {e["data"]["why"] for e in handed} == {"shutdown"}


def test_a_handed_over_run_goes_on_elsewhere_at_once_and_the_roster_tells(
    make_house: MakeHouse, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"

    def script(request: Any) -> Response:
        call = ("run_command", {"command": f"echo x >> {journal}; sleep 1; echo x >> {journal}"})
        return say("done") if answered(request) else ask_tools(call)

    house = make_house(script, DRAIN_SECONDS="20")
    workers = [house.worker(), house.worker()]
    run = house.begin()
    until(lambda: lines(journal), what="the call runs")
    worker = str(row(run).worker)
    leaving = next(one for one in workers if one.pid == holder_pid(run))
    leaving.send_signal(signal.SIGTERM)
    until(lambda: Worker.objects.get(pk=worker).draining, 5, "the roster tells that it drains")
    # No desk here: nobody but the worker itself tells the others.
    ended = reach(run, "completed", within=8)
    assert len(lines(journal)) == 2
    assert (ended.worker != worker, ended.epoch, ended.attempts) == (True, 3, 1)
    times = {e["kind"]: _moment(e["ts"]) for e in events(run) if e["kind"] in ("run.requeued", "run.started")}
    assert times["run.started"] - times["run.requeued"] < 1.0
    assert leaving.wait(10) == 0


def test_a_call_that_does_not_end_by_the_deadline_is_cut_off(make_house: MakeHouse, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = f"echo $$ > {started}; sleep 300"
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": command})),
        DRAIN_SECONDS="1",
    )
    leaving = house.worker()
    run = house.begin()
    until(lambda: lines(started), what="the tool runs")
    house.worker()
    began = time.monotonic()
    leaving.send_signal(signal.SIGTERM)
    assert leaving.wait(10) == 0
    assert 1.0 <= time.monotonic() - began < 5.0
    assert reach(run, "completed").attempts == 1
    assert marked("PILOTHOUSE_RUN", run) == []


def test_drain_names_the_workers_that_there_are(make_house: MakeHouse, capsys: pytest.CaptureFixture[str]) -> None:
    house = make_house(lambda request: say("done"))
    worker: subprocess.Popen[bytes] = house.worker()
    with pytest.raises(Exception, match="Name the workers"):
        call_command("drain")
    with pytest.raises(Exception, match="0 workers are called 'nobody'"):
        call_command("drain", "nobody")
    call_command("drain", "--all")
    assert worker.wait(5) == 0
    assert "asked, 0 runs" in capsys.readouterr().out


def _moment(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()
