"""What counts as new: a state never seen before, a file with new content, a world that moved by itself.

A call is evidence of a loop only if it taught nothing and nothing it depends on has changed since. Going back to an
old state is no change; a mail to somebody changes nothing that a test could see; a remark in a file neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents.policy.answers import Answer
from agents.policy.asked import Edited
from agents.policy.bounded import Bounded
from agents.policy.identity import Act
from agents.policy.lexing import mask, numbers_in
from agents.policy.natures import IDLES, LOOKS, MOVES, Nature
from agents.policy.verbs import segments
from agents.policy.vocabulary import words

_RICH = 60
_WAIT, _CHECK, _RUN, _SEND, _EDIT, _ASK = Nature.WAIT, Nature.CHECK, Nature.RUN, Nature.SEND, Nature.EDIT, Nature.ASK
# What changes nothing by itself.
_STILL = IDLES | {Nature.READ, Nature.CHECK}
_NUMBERS, _HEAD, _ASKED = 8, 400, 200
_SEEN, _TOKENS, _FILES, _HISTORY, _CHANGES = 512, 512, 128, 64, 64
# Of longer calls and answers is read at once what may be asked later, so that they need not be kept.
_HELD = 1_000
_TALK, _ASIDE = words("verbs", "talk"), words("verbs", "aside")
_ON_PAPER = (".md", ".rst", ".txt", ".adoc", "license", "changelog", "readme", "notice", "authors", "todo")


@dataclass(slots=True)
class FileState:
    """`sums`: contents it has had, oldest first; `returns` to old ones since the last new one; `idle` writes that
    changed nothing; `origin`: the checksum of what it held before the run touched it; `codes`: its contents without
    remarks, oldest first."""

    sums: list[str]
    returns: int = 0
    idle: int = 0
    code: str = ""
    first: int = 0
    last: int = 0
    origin: str = ""
    codes: list[str] = field(default_factory=list)

    def has_held(self, edit: Edited, now: str) -> bool:
        return now in self.sums or (bool(self.origin) and edit.exact == self.origin)


@dataclass(slots=True)
class Change:
    """What a call has changed, by the names in it and beside it: read when somebody asks, for mostly nobody does."""

    stamp: int
    act: Act | None
    more: tuple[str, ...]
    found: frozenset[str] | None = None

    def names(self) -> frozenset[str]:
        if self.found is None:
            self.found = frozenset((*(self.act.tokens if self.act is not None else ()), *self.more))
            self.act = None
        return self.found


class Progress:
    """`epoch`: changes of the world so far; `stamp`: the same with what only reached people; `moves`: answers of the
    world that were news to a question asked before; `waits`: pauses taken; `fresh`: answers that taught something;
    `learnt`: questions never asked before that looks have answered; `touches`: new moves that were merely acknowledged;
    `growing`: pauses in a row that were longer than the one before.
    """

    def __init__(self) -> None:
        self.epoch = self.stamp = self.moves = self.waits = self.fresh = self.idle_edits = 0
        self.learnt = self.touches = self.growing = 0
        self._last_wait = 0.0
        self.ordered = 0
        self._seen: Bounded[int] = Bounded(_SEEN)
        self._known: Bounded[int] = Bounded(_SEEN)
        # What was changed, latest last: the stamp, the call that did it or its names, what else it has changed.
        self._changes: list[Change] = []
        # Calls that did something, each with what came of it: the answers, or what they are without ids.
        self._done: Bounded[list[str | Answer]] = Bounded(_SEEN)
        self._told: Bounded[int] = Bounded(_TOKENS)
        # Calls that failed last, and how often one of a tool that had failed then went through.
        self._down: Bounded[int] = Bounded(_TOKENS)
        self._recovered: Bounded[int] = Bounded(_FILES)
        self._files: Bounded[list[Any]] = Bounded(_FILES)
        # The numbers of the last answer to a question, by how much each moved, how often in a row one moved one way; of
        # the first answer its text, since most questions are asked once.
        self._figures: Bounded[list[Any]] = Bounded(_FILES)
        self._trend = [0, 0]

    def trend(self, since: int) -> int:
        """How often in a row a number in the answers to one question has moved one way, if that was after call
        `since`. What rises by the same each time is a counter, which moves by being asked."""
        return self._trend[0] if self._trend[1] > since else 0

    def changed_since(self, tokens: tuple[str, ...], stamp: int) -> bool:
        """Whether something that these names stand for was changed after `stamp`."""
        for change in reversed(self._changes):
            if change.stamp <= stamp:
                break
            if not change.names().isdisjoint(tokens):
                return True
        return False

    def recovered(self, tool: str) -> int:
        """How often trying again has helped with this tool."""
        return self._recovered.get(tool) or 0

    def file(self, path: str) -> FileState | None:
        row = self._files.get(path)
        return FileState(*row) if row else None

    def is_written_anew(self, edits: Mapping[str, Edited]) -> bool:
        """Whether a file holds now what it has never held."""
        for path, edit in list(edits.items())[:16]:
            state = self.file(path) or FileState([], origin=edit.before)
            if not state.has_held(edit, edit.loose or edit.exact) and edit.code not in state.codes:
                return True
        return False

    def learn(self, act: Act, answer: Answer, edits: Mapping[str, Edited]) -> None:
        if act.nature is _WAIT or act.wait_s:
            self.waits += 1
            self.growing = self.growing + 1 if act.wait_s > self._last_wait else 0
            self._last_wait = act.wait_s
        news = act.key + answer.same
        asked_before = act.key in self._known
        if news not in self._seen:
            self._seen.put(news, act.call)
            if not answer.clock and not answer.failed:
                self.fresh += act.nature not in IDLES
                self.moves += asked_before and act.nature in LOOKS
            # A question never asked before: also a check that fails tells something.
            if not asked_before and act.nature in LOOKS and (act.nature is _CHECK or not answer.failed):
                self._learn(act, answer)
        if not answer.failed and answer.length < _HEAD:
            self._measure(act, answer)
        self._known.put(act.key, act.call)
        if answer.failed:
            self._down.put(act.key, act.call)
        elif act.key in self._down:
            self._down.drop(act.key)
            self._recovered.put(act.tool, self.recovered(act.tool) + 1)
        if edits:
            self._edited(act, edits)
        elif not answer.failed and not act.cosmetic:
            self._acted(act, answer)

    def _learn(self, act: Act, answer: Answer) -> None:
        """A question never asked before is answered: that teaches something, unless both were there before but for
        numbers and ids."""
        told = f"{act.tool}\0{mask(act.meant[:_ASKED])}\0{answer.gist}"
        self.learnt += act.nature is _CHECK or told not in self._told
        self._told.put(told, act.call)

    def _measure(self, act: Act, answer: Answer) -> None:
        unread = self._figures.get(act.key)
        if unread is None:
            self._figures.put(act.key, [answer.start])
            return
        numbers, moved, runs = _figures(unread)
        now = list(answer.alone[:_NUMBERS])
        if len(numbers) != len(now):
            self._figures.put(act.key, [now, [0.0] * len(now), [0] * len(now)])
            return
        for at, (one, was) in enumerate(zip(now, numbers, strict=True)):
            by = one - was
            if not by:
                continue
            on = by * moved[at] >= 0 and (by < 0 or (by != moved[at] and by > 2))
            runs[at] = runs[at] + 1 if on else 0
            moved[at] = by
        self._figures.put(act.key, [now, moved, runs])
        if (run := max(runs, default=0)) > 1:
            self._trend = [run, act.call]

    def _acted(self, act: Act, answer: Answer) -> None:
        nature = act.nature
        if nature in _STILL:
            return
        if nature is None and not (answer.acknowledges or answer.sends):
            return
        moves = nature in MOVES
        # A screen that was seen before is no new state, whatever was pressed.
        if not self._is_new("" if moves and answer.length >= _RICH else act.key, answer, moves or nature is _RUN):
            return
        if moves and answer.length < 30:
            self.touches += 1
            return  # an acknowledgement says nothing of the screen
        if nature is _EDIT and _on_paper(act.path):
            self.idle_edits += 1
        only_told = nature is _ASK or (nature is _SEND and talks(act.tool))
        self._change(act, (), world=not (only_told or keeps(act.tool)))

    def _is_new(self, key: str, answer: Answer, to_the_letter: bool) -> bool:
        """Whether nothing like this has come of a call before. What was done once is read when it is done again."""
        if to_the_letter:
            news = f"{key}{answer.same}!"
            if news in self._seen:
                return False
            self._seen.put(news, 0)
            return True
        before = self._done.get(key)
        if before is None:
            self._done.put(key, [answer if answer.length <= _HELD else answer.shape])
            return True
        shapes = [one if isinstance(one, str) else one.shape for one in before]
        self._done.put(key, [*shapes[-_HISTORY + 1 :], *([] if answer.shape in shapes else [answer.shape])])
        return answer.shape not in shapes

    def _change(self, act: Act, more: tuple[str, ...], *, world: bool) -> None:
        self.stamp += 1
        self.epoch += world
        change = Change(self.stamp, act, more)
        if len(act.meant) > _HELD:
            change.names()
        self._changes = [*self._changes[-_CHANGES + 1 :], change]

    def _edited(self, act: Act, edits: Mapping[str, Edited]) -> None:
        for path, edit in list(edits.items())[:16]:
            now, code = edit.loose or edit.exact, edit.code
            row = self._files.get(path)
            state = FileState(*row) if row else FileState([], first=act.call, origin=edit.before)
            state.last = act.call
            if state.sums and state.sums[-1] == now:
                state.idle += 1
            elif state.has_held(edit, now) or (code != state.code and code in state.codes and not _on_paper(path)):
                state.returns += 1
                state.idle = 0
                state.sums.append(now)
            else:
                state.idle = 0
                state.sums.append(now)
                cosmetic = bool(row) and bool(code) and code == state.code
                self.idle_edits += cosmetic or _on_paper(path)
                if not cosmetic:
                    state.returns = 0
                    low = path.casefold()
                    self._change(act, (low, "/".join(low.split("/")[-2:])), world=True)
            if code and code not in state.codes:
                state.codes = [*state.codes[-_HISTORY + 1 :], code]
            state.code = code
            state.sums = state.sums[-_HISTORY:]
            self._files.put(path, [getattr(state, name) for name in FileState.__slots__])

    def forget_returns(self) -> None:
        """A person spoke: whatever went back and forth before was before."""
        for path in self._files:
            row = self._files.get(path)
            if row:
                row[1] = row[2] = 0

    def dump(self) -> dict[str, Any]:
        counts: list[float] = [
            self.epoch,
            self.stamp,
            self.moves,
            self.waits,
            self.fresh,
            self.idle_edits,
            self.ordered,
        ]
        counts += [self.learnt, self.touches, self.growing, self._last_wait]
        return {
            "counts": counts,
            "seen": self._seen.dump(),
            "known": self._known.dump(),
            "told": self._told.dump(),
            "changes": [[one.stamp, sorted(one.names())] for one in self._changes],
            "done": [
                [key, [one if isinstance(one, str) else one.shape for one in row]] for key, row in self._done.items()
            ],
            "files": self._files.dump(),
            "down": self._down.dump(),
            "recovered": self._recovered.dump(),
            "figures": [[key, _figures(row)] for key, row in self._figures.dump()],
            "trend": list(self._trend),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        counts = state["counts"]
        self.epoch, self.stamp, self.moves, self.waits, self.fresh, self.idle_edits, self.ordered = counts[:7]
        self.learnt, self.touches, self.growing, self._last_wait = counts[7:]
        self._seen.load(state["seen"])
        self._known.load(state["known"])
        self._told.load(state.get("told", ()))
        self._changes = [Change(at, None, (), frozenset(names)) for at, names in state["changes"]]
        self._done.load(state["done"])
        self._files.load(state["files"])
        self._down.load(state["down"])
        self._recovered.load(state["recovered"])
        self._figures.load(state["figures"])
        self._trend = list(state["trend"])


def _figures(row: list[Any]) -> list[Any]:
    """What is kept of the numbers in the answers to one question, read if it was not yet."""
    if len(row) > 1:
        return row
    now = numbers_in(row[0])[:_NUMBERS]
    return [now, [0.0] * len(now), [0] * len(now)]


@lru_cache(maxsize=1024)
def talks(tool: str) -> bool:
    """Whether a tool only tells somebody something."""
    return not _TALK.isdisjoint(segments(tool))


@lru_cache(maxsize=1024)
def keeps(tool: str) -> bool:
    """Whether a tool only keeps words for later: notes, a diary."""
    return not _ASIDE.isdisjoint(segments(tool))


def _on_paper(path: str) -> bool:
    return path.casefold().endswith(_ON_PAPER)
