"""A run that outgrows its model's window, in real processes: another worker goes on with the same history."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.engine.transcript import Transcript
from agents.events import decode
from agents.policy import summaries
from control.runs.models import Event
from tests.control.runs.processes import House, events, holder_pid, kinds, reach, row, until
from tests.scripted_server import ask_tools, say, stall

pytestmark = [pytest.mark.chaos]
GOOD = "Done: the steps so far, all of them noted in notes.md. Found: the bug is in parse.py. Next: the next file. " * 4


def _is_summary(messages: Any) -> bool:
    return bool(messages[0]["content"].startswith(summaries.SYSTEM[:40]))


def test_a_compressed_history_is_the_same_for_the_worker_that_goes_on(
    make_house: Callable[..., House], tmp_path: Path
) -> None:
    catalog = tmp_path / "models.toml"
    catalog.write_text('[[model]]\nname = "m"\nwindow = 6000\noutput_cap = 800\n')
    seen: list[Any] = []

    def script(request: Any) -> Any:
        messages = request["messages"]
        used = {"prompt_tokens": len(str(request)) // 4, "completion_tokens": 20}
        if _is_summary(messages):
            return say(GOOD, used=used)
        seen.append(messages)
        if "[Summary of the work so far" not in str(messages):
            return ask_tools(("run_command", {"command": "yes 'a line of output' | head -c 2500"}), used=used)
        dying = sum("[Summary of the work so far" in str(one) for one in seen) == 2
        if dying:
            return say("half", after=[stall()])
        return say("done", used=used) if len(seen) > 12 else ask_tools(("list_files", {}), used=used)

    house = make_house(script, MODEL_CATALOG=str(catalog))
    house.worker()
    house.desk()
    run = house.begin("Task ZX-41")
    until(lambda: sum("[Summary of" in str(one) for one in seen) == 2, what="a turn behind the compression")
    before = seen[-1]
    os.kill(holder_pid(run), signal.SIGKILL)
    house.worker()
    until(lambda: row(run).epoch > 1, 20, "the run is reclaimed")
    until(lambda: sum("[Summary of" in str(one) for one in seen) >= 3, what="it goes on")
    assert seen[seen.index(before) + 1] == before
    assert reach(run, "completed", "failed").status == "completed"
    compressed = next(event for event in events(run) if event["kind"] == "context.compressed")["data"]
    assert "call.completed" in kinds(run)[compressed["from_seq"] - 1]
    assert "call.completed" in kinds(run)[compressed["to_seq"] - 1]
    transcript = Transcript()
    for body in Event.objects.filter(run_id=run).order_by("seq").values_list("body", flat=True):
        event = decode(body)
        transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at, seq=event.seq)
    assert "Task ZX-41" in transcript.messages[0].text and GOOD.strip() in transcript.messages[0].text
