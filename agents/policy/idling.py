"""Moves without work: files that go back and forth, plans, thoughts, texts and compressions in a row, children."""

from typing import Any

from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.canonical import digest, flat_key, meaning
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.natures import IDLES, Nature
from agents.policy.progress import Progress

_ANNOUNCEMENT = 300
_KEYS, _PLANS, _TEXTS = 256, 64, 32
_COUNTED = IDLES | {Nature.SPAWN}
_EDIT, _WAIT = Nature.EDIT, Nature.WAIT


class Idling:
    name = "idling"

    def __init__(self) -> None:
        self._wrote: Bounded[list[str]] = Bounded(_KEYS)
        self._plans: Bounded[int] = Bounded(_PLANS)
        self._texts: Bounded[int] = Bounded(_TEXTS)
        self._oscillation_refused: Bounded[int] = Bounded(_KEYS)
        self.plans = self.thoughts = self.waits = self.compressions = self.spawns = self.fresh = 0
        self.first = self.last = self.batch = self.announced = 0

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        if act.exempt:
            return None
        return self._idle(act) if act.nature in _COUNTED else self._edit(act, progress)

    def _idle(self, act: Act) -> Finding | None:
        if act.nature is Nature.PLAN:
            return self._found("bookkeeping_only", act, self.plans, "plans without work between them")
        if act.nature is Nature.THINK:
            return self._found("thinking_only", act, self.thoughts, "thoughts without work between them")
        if act.nature is Nature.WAIT:
            return self._found("waiting_only", act, self.waits, "waits without a look between them")
        return self._found("spawns", act, self.spawns, "sub-agents")

    def _edit(self, act: Act, progress: Progress) -> Finding | None:
        paths = self._wrote.get(act.key) or ([act.path] if act.path and act.nature is _EDIT else [])
        found: Finding | None = None
        for path in paths:
            state = progress.file(path)
            if state is None or not (act.content or act.key in self._wrote):
                continue
            refused = self._oscillation_refused.get(path) or 0
            old = {*state.sums[:-1], *(one for one in state.codes if one != state.code)}
            back = not old.isdisjoint(act.content) if act.content else act.key in self._wrote
            if state.idle and (not act.content or state.sums[-1] in act.content):
                found = self._found("edit_without_change", act, state.idle + refused, "writes that changed nothing")
            elif state.returns and back:
                found = self._found("edit_oscillation", act, state.returns + refused, "ways back to an old content")
            if found is not None:
                found.first, found.last, found.fingerprint = state.first, state.last, digest(path)
        return found

    def _found(self, rule: str, act: Act, count: int, what: str) -> Finding | None:
        if count <= 0:
            return None
        return Finding(rule=rule, count=count, fingerprint=act.key, first=self.first, last=self.last, what=what)

    def learn(self, act: Act, answer: Answer, progress: Progress, edits: list[str]) -> None:
        if edits:
            self._wrote.put(act.key, edits[:4])
        if act.nature in _COUNTED:
            self._count(act)
        if progress.fresh > self.fresh:
            self.announced = 0
            if act.nature not in IDLES:
                self.plans = self.thoughts = self.compressions = 0
                self._texts.clear()
        if act.nature is not _WAIT:
            self.waits = 0
        if self.plans + self.thoughts + self.waits <= 1:
            self.first = act.call
        self.fresh, self.last, self.batch = progress.fresh, act.call, act.batch

    def _count(self, act: Act) -> None:
        if act.nature is Nature.PLAN:
            state = _plan_state(act.args)
            if state not in self._plans:
                self._plans.put(state, act.call)
                self.plans = 0
            self.plans += self.batch != act.batch or not self.plans
        elif act.nature is Nature.THINK:
            self.thoughts += 1
        elif act.nature is Nature.WAIT:
            self.waits += 1
        else:
            self.spawns += 1

    def said(self, text: str, call: int) -> Finding | None:
        """A message without a call. What was said before counts on every time until a call teaches something."""
        key = digest(" ".join(text.casefold().split()))
        count = self._texts.get(key) or 0
        self._texts.put(key, count + 1)
        # Announcements in ever other words: nothing was done between them.
        self.announced += len(text) < _ANNOUNCEMENT
        count = max(count, self.announced)
        if count <= 0:
            return None
        return Finding(
            rule="repeated_text", count=count, fingerprint=key, first=self.last, last=call, what="the same message"
        )

    def compressed(self, call: int) -> Finding | None:
        self.compressions += 1
        if self.compressions < 2:
            return None
        return Finding(
            rule="compaction_only",
            count=self.compressions - 1,
            fingerprint="compaction",
            first=self.last,
            last=call,
            what="compressions without work between them",
        )

    def refused(self, act: Act) -> None:
        if act.nature is Nature.PLAN:
            self.plans += 1
        elif act.nature is Nature.THINK:
            self.thoughts += 1
        for path in self._wrote.get(act.key) or ([act.path] if act.path and act.content else []):
            self._oscillation_refused.put(path, (self._oscillation_refused.get(path) or 0) + 1)

    def person_spoke(self) -> None:
        self.plans = self.thoughts = self.waits = self.compressions = self.announced = 0
        self._texts.clear()
        self._plans.clear()
        self._oscillation_refused.clear()

    def dump(self) -> dict[str, Any]:
        counts = [self.plans, self.thoughts, self.waits, self.compressions, self.spawns, self.fresh]
        tables = [self._wrote.dump(), self._plans.dump(), self._texts.dump(), self._oscillation_refused.dump()]
        return {"counts": [*counts, self.first, self.last, self.batch, self.announced], "tables": tables}

    def load(self, state: dict[str, Any]) -> None:
        self.plans, self.thoughts, self.waits, self.compressions, self.spawns, self.fresh = state["counts"][:6]
        self.first, self.last, self.batch, self.announced = state["counts"][6:]
        wrote, plans, texts, refused = state["tables"]
        self._wrote.load(wrote)
        self._plans.load(plans)
        self._texts.load(texts)
        self._oscillation_refused.load(refused)


def _plan_state(args: Any) -> str:
    """How far each item is, whatever the items are called and in which order they stand."""
    found: list[str] = []
    _collect(args, found, 0)
    return digest("|".join(sorted(found)) if found else meaning(args))


def _collect(value: Any, found: list[str], depth: int) -> None:
    if depth > 6 or len(found) > 200:
        return
    if isinstance(value, dict):
        for key, one in list(value.items())[:100]:
            if flat_key(key) in ("status", "state", "done", "completed", "checked", "progress"):
                found.append(str(one).casefold())
            else:
                _collect(one, found, depth + 1)
    elif isinstance(value, list):
        for one in value[:200]:
            _collect(one, found, depth + 1)
