"""A bare loop for tests of scripts: asks a script, runs its calls with plain functions, tells it the results."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents.drill.scenarios import SCENARIOS, reply
from agents.drill.script import Reply, read

Tools = Mapping[str, Callable[..., str]]


def _lines(text: str, start: int, lines: int | None) -> str:
    return "".join(text.splitlines(keepends=True)[start - 1 : None if lines is None else start - 1 + lines])


def workspace_tools(root: Path, answer: str = "Add a README") -> dict[str, Callable[..., str]]:
    """Just enough of the real tools to play a whole tour in a directory."""

    def write_file(path: str, content: str) -> str:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
        return "written"

    def edit_file(path: str, old: str, new: str) -> str:
        text = (root / path).read_text()
        assert old in text
        return write_file(path, text.replace(old, new))

    def run_command(command: str) -> str:
        done = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=False)
        return f"{done.stdout}{done.stderr}\nexit code {done.returncode}"

    return {
        "list_files": lambda path=".": "\n".join(str(found.relative_to(root)) for found in sorted(root.rglob("*"))),
        "read_file": lambda path, start=1, lines=None: _lines((root / path).read_text(), start, lines),
        "search_files": lambda pattern: "none",
        "write_file": write_file,
        "edit_file": edit_file,
        "run_command": run_command,
        "clarify": lambda question, choices: answer,
        "delegate": lambda task: f"did {task.split(':')[0]}",
    }


class Play:
    """One played conversation. `notes` maps an answer's number (from 1) to a note told with that answer's results."""

    def __init__(self, model: str, task: str, tools: Tools, *, turns: int = 40, notes: Mapping[int, str] | None = None):
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
        self.replies: list[Reply] = []
        self._model, self._tools, self._notes = model, tools, notes or {}
        while len(self.replies) < turns and self._turn():
            pass

    @property
    def asked(self) -> list[str]:
        return [call.name for said in self.replies for call in said.calls]

    @property
    def final(self) -> str:
        assert not self.replies[-1].calls, "the script did not come to an end"
        return self.replies[-1].text

    def ask(self, tools: Tools) -> Reply:
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        request = {"model": self._model, "messages": self.messages, "tools": offered}
        return reply(SCENARIOS[self._model], read(request))

    def _turn(self) -> bool:
        said = self.ask(self._tools)
        self.replies.append(said)
        number = len(self.replies)
        note = self._notes.get(number)
        calls = [
            {"id": f"c{number}.{i}", "function": {"name": call.name, "arguments": json.dumps(call.args)}}
            for i, call in enumerate(said.calls)
        ]
        self.messages.append({"role": "assistant", "content": said.text, "tool_calls": calls})
        for call, wire in zip(said.calls, calls, strict=True):
            try:
                tool = self._tools.get(call.name)
                result = tool(**call.args) if tool else f"error: there is no tool {call.name}"
            except (OSError, AssertionError) as error:
                result = f"error: {error}"
            self.messages.append({"role": "tool", "tool_call_id": wire["id"], "content": result})
        if note and calls:
            self.messages[-1]["content"] += f"\n\n[User note: {note}]"
        elif note:
            self.messages.append({"role": "user", "content": f"[User note: {note}]"})
        return bool(calls or note)
