"""Fuses that fail closed: steps, tokens, money, identical calls over the whole run, files that go back and forth."""

from collections.abc import Mapping
from typing import Any

from agents.policy.asked import Edited
from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.policies import Fuses

_CALLS, _FILES, _HISTORY = 2_048, 256, 64


class Counted:
    """What a run has used of its fuses. Nothing resets it: neither a person's word nor a new state."""

    def __init__(self) -> None:
        self.steps = self.tokens = self.failures = self.oscillations = 0
        self.usd = 0.0
        self._calls: Bounded[list[int]] = Bounded(_CALLS)
        self._files: Bounded[list[str]] = Bounded(_FILES)

    def judge(self, act: Act, fuses: Fuses) -> Finding | None:
        """Count a call in before it runs; what trips, if something does."""
        self.steps += 1
        self.tokens += act.spent_tokens
        self.usd += act.spent_usd
        if fuses.max_steps is not None and self.steps > fuses.max_steps:
            return _trip("max_steps", self.steps, act, f"tool calls of {fuses.max_steps} allowed")
        if fuses.max_tokens is not None and self.tokens > fuses.max_tokens:
            return _trip("max_tokens", self.tokens, act, f"tokens of {fuses.max_tokens} allowed")
        if fuses.max_cost is not None and self.usd > fuses.max_cost:
            return _trip("max_cost", self.steps, act, f"tool calls for ${self.usd:.4f} of ${fuses.max_cost} allowed")
        if fuses.max_failures_in_a_row is not None and self.failures >= fuses.max_failures_in_a_row:
            return _trip("max_failures_in_a_row", self.failures, act, "failures in a row")
        return self._identical(act, fuses)

    def _identical(self, act: Act, fuses: Fuses) -> Finding | None:
        if fuses.max_identical_calls is None:
            return None
        row = self._calls.get(act.exact) or [0, act.call, act.call]
        row[0] += 1
        self._calls.put(act.exact, row)
        if row[0] <= fuses.max_identical_calls:
            return None
        found = _trip("max_identical_calls", row[0], act, f"identical calls of {fuses.max_identical_calls} allowed")
        found.first, found.last, found.fingerprint = row[1], row[2], act.exact
        return found

    def answered(self, failed: bool) -> None:
        """An answer that the model reads now."""
        self.failures = self.failures + 1 if failed else 0

    def learn(self, act: Act, edits: Mapping[str, Edited], fuses: Fuses) -> Finding | None:
        """Count what a call has done; a file that went back once too often trips at once."""
        row = self._calls.get(act.exact) if fuses.max_identical_calls is not None else None
        if row is not None:
            row[2] = act.call
        if edits:
            for path, edit in list(edits.items())[:64]:
                self._wrote(path, edit.exact)
        if fuses.max_oscillations is not None and self.oscillations > fuses.max_oscillations:
            return _trip(
                "max_oscillations",
                self.oscillations,
                act,
                f"ways back to an old content of {fuses.max_oscillations} allowed",
            )
        return None

    def _wrote(self, path: str, now: str) -> None:
        history = self._files.get(path) or []
        if history and history[-1] == now:
            return  # the same content twice in a row is no change
        self.oscillations += now in history
        self._files.put(path, [*history, now][-_HISTORY:])

    def dump(self) -> list[Any]:
        counts = [self.steps, self.tokens, self.failures, self.oscillations, self.usd]
        return [counts, self._calls.dump(), self._files.dump()]

    def load(self, rows: list[Any]) -> None:
        self.steps, self.tokens, self.failures, self.oscillations, self.usd = rows[0]
        self._calls.load(rows[1])
        self._files.load(rows[2])


def _trip(fuse: str, count: int, act: Act, what: str) -> Finding:
    return Finding(rule=fuse, count=count, fingerprint=act.exact, first=act.call, last=act.call, what=what)
