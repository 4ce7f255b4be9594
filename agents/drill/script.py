"""What a script sees and what it says: a conversation read from the request, and the reply that follows from it.

Scripts keep no state: whatever they decide, they decide from the messages they are told, as a model does.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.ports import Tool

# A note stands alone (a message of its own) or after a blank line at the end of a text; several may follow each other.
_NOTES_AT_END = re.compile(r"(?:(?:^|\n\n)\[User note: (?:(?!\n\n\[User note: ).)*\])+\s*\Z", re.DOTALL)
_ONE_NOTE = re.compile(r"\[User note: ((?:(?!\n\n\[User note: ).)*)\]\s*(?=\Z|\n\n\[User note: )", re.DOTALL)
_FINISH = re.compile(r"\b(stop|answer now|finish|wrap up|enough)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One tool call that a script asks for."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One past call with its result as the model was told it; `result` is None if no answer came."""

    name: str
    args: Mapping[str, Any]
    result: str | None

    @property
    def blocked(self) -> bool:
        """Whether the guard refused it: it was not run."""
        return (self.result or "").startswith("Not run")

    @property
    def unchanged(self) -> bool:
        """Whether it was run and the guard answered only that nothing has changed."""
        return (self.result or "").startswith("Unchanged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says next. `pace_s` is the wait before each token."""

    text: str
    calls: tuple[Asked, ...] = ()
    pace_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One request as a script sees it. `answers` counts the model's messages so far, `fresh` holds unanswered notes."""

    model: str
    task: str
    steps: tuple[Step, ...]
    answers: int
    offered: frozenset[str]
    notes: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()

    @property
    def last(self) -> Step | None:
        return self.steps[-1] if self.steps else None

    def done(self, name: str, **args: Any) -> list[Step]:
        """The past calls of this tool whose arguments include the given ones."""
        return [s for s in self.steps if s.name == name and all(s.args.get(k) == v for k, v in args.items())]

    def ran(self, name: str, **args: Any) -> list[Step]:
        """The same without those that the guard refused."""
        return [step for step in self.done(name, **args) if not step.blocked]

    def told(self, *words: str) -> bool:
        """Whether some note of the operator holds all these words."""
        return any(all(word in note.lower() for word in words) for note in self.notes)

    @property
    def told_to_finish(self) -> bool:
        return any(_FINISH.search(note) for note in self.notes)

    def number(self, name: str, default: float) -> float:
        """A parameter of the task text, e.g. `tokens=200`."""
        found = re.search(rf"\b{name}=(\d+(?:\.\d+)?)", self.task)
        return float(found.group(1)) if found else default

    def word(self, name: str) -> str | None:
        found = re.search(rf"\b{name}=([\w.:-]+)", self.task)
        return found.group(1) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scripted model. `kind` is loop, healthy, or None for those that only serve as something to watch.

    `goal` is what a summary compares itself with; `needs_tools` tells a script that has nothing to say without them.
    `tools` are those of the default agent that it uses; `own_tools` makes, anew for each run, those that only it has.
    `project`: files, by path, of the git repository in a worktree of which it plays.
    """

    name: str
    kind: str | None
    task: str
    goal: str
    play: Callable[[Conversation], Reply]
    needs_tools: bool = True
    tools: tuple[str, ...] = field(default=())
    own_tools: Callable[[], tuple[Tool, ...]] = tuple
    project: Mapping[str, str] = field(default_factory=dict)


def split_notes(text: str) -> tuple[str, tuple[str, ...]]:
    """A text and the operator's notes at its end."""
    if "[User note: " not in text:
        return text, ()
    found = _NOTES_AT_END.search(text)
    if not found:
        return text, ()
    return text[: found.start()], tuple(match.group(1) for match in _ONE_NOTE.finditer(found.group()))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return ""


def _args(raw: Any) -> Mapping[str, Any]:
    try:
        value = orjson.loads(raw)
    except (orjson.JSONDecodeError, TypeError):
        return {}
    return value if isinstance(value, dict) else {}


def read(request: Mapping[str, Any]) -> Conversation:
    """The conversation that an OpenAI-style request tells. Unknown roles and odd fields are passed over."""
    task: str | None = None
    asked: list[tuple[str, str, Mapping[str, Any]]] = []
    results: dict[str, str] = {}
    notes: list[str] = []
    seen = answers = 0
    for message in request.get("messages", ()):
        role, text = message.get("role"), _text(message.get("content"))
        if role == "assistant":
            answers += 1
            seen = len(notes)
            for call in message.get("tool_calls") or ():
                function = call.get("function", {})
                asked.append((call.get("id", ""), function.get("name", ""), _args(function.get("arguments"))))
        elif role in ("user", "tool"):
            plain, found = split_notes(text)
            if role == "tool":
                results[message.get("tool_call_id", "")] = plain
            elif task is None:
                task = plain
            elif not found:
                found = (plain,)
            notes.extend(found)
    return Conversation(
        model=str(request.get("model", "")),
        task=task or "",
        steps=tuple(Step(name=name, args=args, result=results.get(key)) for key, name, args in asked),
        answers=answers,
        offered=frozenset(tool.get("function", {}).get("name", "") for tool in request.get("tools") or ()),
        notes=tuple(notes),
        fresh=tuple(notes[seen:]),
    )


def acknowledge(notes: Sequence[str], text: str) -> str:
    """The text with the notes' own words before it, so that an operator sees that they were read."""
    return "".join(f"Noted: “{note.strip()}”. " for note in notes) + text


def first_line(text: str | None, limit: int = 160) -> str:
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), "no result")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def summary(conversation: Conversation, goal: str) -> Reply:
    """What a model says when it is offered no tools any more: what was done, where it stands, what is left."""
    counts = Counter(step.name for step in conversation.steps)
    if not counts:
        return Reply(text=f"No tools were offered and nothing was done. What is left: {goal}.")
    done = ", ".join(f"{name} {count}" for name, count in counts.items())
    last = conversation.steps[-1]
    return Reply(
        text=f"Summary. Done: {len(conversation.steps)} calls ({done}). Where it stands: the last call, {last.name}, "
        f"answered “{first_line(last.result)}”. What is left: whatever of this goal those calls do not show: {goal}."
    )
