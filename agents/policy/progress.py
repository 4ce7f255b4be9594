"""What counts as new: a state never seen before, a file with new content, a world that moved by itself.

A call is evidence of a loop only if it taught nothing and nothing it depends on has changed since. Going back to an
old state is no change; a mail to somebody changes nothing that a test could see; a remark in a file neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.policy.answers import Answer
from agents.policy.asked import Edited
from agents.policy.bounded import Bounded
from agents.policy.canonical import digest
from agents.policy.identity import Act
from agents.policy.natures import LOOKS, Nature
from agents.policy.verbs import segments
from agents.policy.vocabulary import words

_SEEN, _TOKENS, _FILES, _HISTORY = 512, 512, 128, 64
_TALK = words("verbs", "talk")
_ON_PAPER = (".md", ".rst", ".txt", ".adoc", "license", "changelog", "readme", "notice", "authors", "todo")


@dataclass(slots=True)
class FileState:
    """`sums`: contents it has had, oldest first; `returns` to old ones since the last new one; `idle` writes that
    changed nothing."""

    sums: list[str]
    returns: int = 0
    idle: int = 0
    code: str = ""
    first: int = 0
    last: int = 0


class Progress:
    """`epoch`: changes of the world so far; `stamp`: the same with what only reached people; `moves`: answers of the
    world that were news to a question asked before; `waits`: pauses taken; `fresh`: answers that taught something."""

    def __init__(self) -> None:
        self.epoch = self.stamp = self.moves = self.waits = self.fresh = self.idle_edits = 0
        self.ordered = 0
        self._seen: Bounded[int] = Bounded(_SEEN)
        self._known: Bounded[int] = Bounded(_SEEN)
        self._changed: Bounded[int] = Bounded(_TOKENS)
        self._files: Bounded[list[Any]] = Bounded(_FILES)

    def changed_since(self, tokens: tuple[str, ...], stamp: int) -> bool:
        """Whether something that these names stand for was changed after `stamp`."""
        return any((self._changed.get(token) or -1) > stamp for token in tokens)

    def file(self, path: str) -> FileState | None:
        row = self._files.get(path)
        return FileState(*row) if row else None

    def learn(self, act: Act, answer: Answer, edits: Mapping[str, Edited]) -> None:
        if act.nature is Nature.WAIT or act.wait_s:
            self.waits += 1
        news = digest(f"{act.key}{answer.same}")
        asked_before = act.key in self._known
        if news not in self._seen:
            self._seen.put(news, act.call)
            if not answer.clock and not answer.failed:
                self.fresh += act.nature not in (Nature.THINK, Nature.PLAN, Nature.WAIT)
                self.moves += asked_before and act.nature in LOOKS
        self._known.put(act.key, act.call)
        if edits:
            self._edited(act, edits)
        elif not answer.failed and not act.cosmetic:
            self._acted(act, answer)

    def _acted(self, act: Act, answer: Answer) -> None:
        nature = act.nature
        if nature in (Nature.READ, Nature.CHECK, Nature.THINK, Nature.PLAN, Nature.WAIT):
            return
        if nature is None and not (answer.acknowledges or answer.sends):
            return
        done = digest(
            f"{act.key}{answer.same if nature in (Nature.STEP, Nature.SCREEN, Nature.RUN) else answer.shape}!"
        )
        if done in self._seen:
            return
        self._seen.put(done, act.call)
        if nature in (Nature.STEP, Nature.SCREEN) and answer.length < 30:
            return  # an acknowledgement says nothing of the screen
        if nature is Nature.EDIT and _on_paper(act.path):
            self.idle_edits += 1
        self._change(act.tokens, world=not (nature is Nature.SEND and talks(act.tool)))

    def _change(self, tokens: tuple[str, ...], *, world: bool) -> None:
        self.stamp += 1
        self.epoch += world
        for token in tokens:
            self._changed.put(token, self.stamp)

    def _edited(self, act: Act, edits: Mapping[str, Edited]) -> None:
        for path, edit in list(edits.items())[:16]:
            now, code = edit.loose or edit.exact, edit.code
            row = self._files.get(path)
            state = FileState(*row) if row else FileState([], first=act.call)
            state.last = act.call
            if state.sums and state.sums[-1] == now:
                state.idle += 1
            elif now in state.sums:
                state.returns += 1
                state.idle = 0
                state.sums.append(now)
            else:
                state.returns = state.idle = 0
                state.sums.append(now)
                cosmetic = bool(row) and bool(code) and code == state.code
                self.idle_edits += cosmetic or _on_paper(path)
                if not cosmetic:
                    self._change((*act.tokens, path.casefold(), "/".join(path.casefold().split("/")[-2:])), world=True)
            state.code = code
            state.sums = state.sums[-_HISTORY:]
            self._files.put(path, [state.sums, state.returns, state.idle, state.code, state.first, state.last])

    def forget_returns(self) -> None:
        """A person spoke: whatever went back and forth before was before."""
        for path in self._files:
            row = self._files.get(path)
            if row:
                row[1] = row[2] = 0

    def dump(self) -> dict[str, Any]:
        counts = [self.epoch, self.stamp, self.moves, self.waits, self.fresh, self.idle_edits, self.ordered]
        return {
            "counts": counts,
            "seen": self._seen.dump(),
            "known": self._known.dump(),
            "changed": self._changed.dump(),
            "files": self._files.dump(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        counts = state["counts"]
        self.epoch, self.stamp, self.moves, self.waits, self.fresh, self.idle_edits, self.ordered = counts
        self._seen.load(state["seen"])
        self._known.load(state["known"])
        self._changed.load(state["changed"])
        self._files.load(state["files"])


def talks(tool: str) -> bool:
    """Whether a tool only tells somebody something."""
    return not _TALK.isdisjoint(segments(tool))


def _on_paper(path: str) -> bool:
    return path.casefold().endswith(_ON_PAPER)
