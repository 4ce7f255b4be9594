"""What runs while things break: a model that plays from the conversation alone, and people who start and command.

A run's task says its name, its turns and its sub-agents. Each `run_command` of a run has a key of its own, which it
writes into the journal before anything else: what is there twice ran twice.
"""

import itertools
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.chaos.fleet import Fleet
from tests.scripted_server import Response, ask_tools, say, wait

_TASK = re.compile(r"name=(\S+) turns=(\d+) kids=(\d+)")
KEY = re.compile(r"echo key:(\S+) >>")


class Script:
    def __init__(self, journal: Path, pace_s: float) -> None:
        self.journal = journal
        self._pace_s = pace_s

    def __call__(self, request: Any) -> Response:
        found = _TASK.search(str(request["messages"][1]["content"]))
        assert found is not None, request["messages"][1]
        name, turns, kids = found[1], int(found[2]), int(found[3])
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        # Not all at the same beat, and the same each time that a turn is asked for again.
        pace = self._pace_s * (0.5 + (sum(name.encode()) + turn) % 7 / 6)
        if turn >= turns:
            return say("all done", before=[wait(pace)])
        calls = self._family(name, kids) if kids and turn == 1 else self._work(name, turn)
        return _slowly(calls, pace)

    def _family(self, name: str, kids: int) -> list[tuple[str, Any]]:
        return [
            ("delegate", {"task": f"name={name}.{kid} turns=3 kids=0", **({"detached": True} if kid == 0 else {})})
            for kid in range(kids)
        ]

    def _work(self, name: str, turn: int) -> list[tuple[str, Any]]:
        def command(letter: str, rest: str) -> tuple[str, Any]:
            return ("run_command", {"command": f"echo key:{name}/{turn}{letter} >> {self.journal}; {rest}"})

        work = [("list_files", {}), command("a", "sleep 0.1"), ("list_files", {"path": "."})]
        if turn % 3 == 1:
            work.append(command("b", "(setsid sleep 300 &); sleep 0.05; exit 0"))
        if turn % 3 == 2:
            work.append(("write_file", {"path": f"{name}-{turn}.txt", "content": "here"}))
            work.append(command("c", "sleep 0.02"))
        return work

    def keys(self) -> Counter[str]:
        text = self.journal.read_text() if self.journal.exists() else ""
        return Counter(line.removeprefix("key:") for line in text.splitlines())


def _slowly(calls: list[tuple[str, Any]], pace: float) -> Response:
    answer = ask_tools(*calls)
    half = len(answer.moves) // 2
    moves = [*answer.moves[:half], wait(pace), *answer.moves[half:]]
    return Response(headers=answer.headers, moves=moves, flush=answer.flush)


class Load(threading.Thread):
    """Keeps so many runs alive, and tells some of them something, until `stop`; what it asked for is in `commands`."""

    def __init__(self, fleet: Fleet, alive: int, turns: int) -> None:
        super().__init__(name="load", daemon=True)
        self.fleet = fleet
        self.started: list[str] = []
        self.commands: list[str] = []
        self.failed: BaseException | None = None
        self._numbers = itertools.count()
        self._alive = alive
        self._turns = turns
        self._enough = threading.Event()

    def run(self) -> None:
        try:
            while not self._enough.wait(0.15):
                self._turn()
        except BaseException as error:
            self.failed = error

    def stop(self) -> None:
        self._enough.set()
        self.join(90)
        if self.failed is not None:
            raise self.failed

    def _turn(self) -> None:
        fleet = self.fleet
        alive = [run for (run,) in fleet.sql("SELECT id FROM runs_run WHERE finished_at IS NULL AND parent IS NULL")]
        for _ in range(self._alive - len(alive)):
            self.begin()
        if alive and fleet.random.random() < 0.3:
            self.command(fleet.random.choice(alive))

    def begin(self) -> str:
        number = next(self._numbers)
        task = f"name=r{number} turns={self._turns} kids={(0, 2, 3)[number % 3]}"
        asked = {"agent": "default", "task": task, "model": "m", "base_url": self.fleet.model_url, "policy": "off"}
        answer = self.fleet.post("/api/runs", asked)
        assert answer.status_code == 201, answer.text
        run = str(answer.json()["id"])
        self.started.append(run)
        return run

    def interrupt(self, run: str) -> None:
        self._told(f"/api/runs/{run}/interrupt", reason="enough")

    def command(self, run: str) -> None:
        match self.fleet.random.randrange(8):
            case 0:
                self.interrupt(run)
            case 1 | 2:
                self._told(f"/api/runs/{run}/pause")
                self._told(f"/api/runs/{run}/unpause")
            case _:
                self._told(f"/api/runs/{run}/steer", note="be quick")

    def _told(self, path: str, **body: str) -> None:
        answer = self.fleet.post(path, body)
        assert answer.status_code in (200, 202, 409), (path, answer.status_code, answer.text)
        command = answer.json().get("command")
        if isinstance(command, dict):
            self.commands.append(str(command["id"]))
