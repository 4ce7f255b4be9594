"""The signs that the guard sees at each call of a labelled sequence, and whether the answer was no news."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.policy import guard as guards
from agents.policy import recorded
from agents.policy.answers import Answer
from agents.policy.asked import Answered, Edited
from agents.policy.courses import HARD
from agents.policy.findings import Finding
from agents.policy.forest import Forest
from agents.policy.identity import Act
from agents.policy.natures import EFFECTS
from agents.policy.policies import Fuses, policy_from, shipped
from agents.policy.progress import Progress
from agents.policy.stagnation import Stagnation
from agents.verdicts import Rung, Verdict

FIXTURES = Path(__file__).parents[1] / "fixtures"


@dataclass(slots=True)
class Seen:
    """One call: its place, its signs (None: not looked at), whether it acts, and reaches somebody, whether its answer
    was no news; how another rule would have held it back (`refuse`, `stub`, `stop`; empty: not at all); whether it
    may be refused."""

    call: int
    signs: list[float] | None
    acts: bool
    hard: bool
    stale: bool = False
    held: str = ""
    sure: bool = True


class _Looking(Stagnation):
    """Notes what it sees and says nothing."""

    looks_always = True

    def __init__(self, seen: dict[int, Seen]) -> None:
        super().__init__(Forest(total=lambda signs: 0.0, refuse=2.0, stub=2.0, stub_act=2.0))
        self._seen = seen

    def judge(self, act: Act, progress: Progress, counts: Mapping[str, float]) -> Finding | None:
        looks = not (act.exempt or act.tied) and self.suspicious(counts)
        signs = self.signs(act, progress, counts) if looks else None
        seen = Seen(act.call, signs, act.nature in EFFECTS, act.nature in HARD)
        seen.sure = looks and self._is_sure(act)
        self._seen[act.call] = seen
        return None

    def learn(self, act: Act, answer: Answer, edits: Mapping[str, Edited]) -> None:
        if act.call in self._seen:
            self._seen[act.call].stale = self.still_same(act, answer)
        super().learn(act, answer, edits)


def seen_in(row: Mapping[str, Any]) -> list[Seen]:
    """What there is to see in one sequence when nothing is held back."""
    body = {**shipped("default"), "shadow": True}
    policy = replace(policy_from(body, "default"), fuses=Fuses())
    seen: dict[int, Seen] = {}

    class Watching(guards.Guard):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self._stagnation = _Looking(seen)

        def _verdict(self, act: Act) -> tuple[Verdict | None, str]:
            verdict, name = super()._verdict(act)
            if verdict is not None and verdict.rung is not Rung.OBSERVE and act.call in seen:
                seen[act.call].held = "stop" if verdict.rung is Rung.STOP else (verdict.mode or "")
            return verdict, name

        def observe(self, call: int, answered: Answered) -> Verdict | None:
            verdict = super().observe(call, answered)
            if verdict is not None and verdict.rung is Rung.OBSERVE and call in seen and seen[call].held == "stub":
                seen[call].held = ""
            return verdict

    recorded.judge_sequence(row, policy, Watching)
    return list(seen.values())


def labelled(*names: str) -> Iterator[tuple[dict[str, Any], bool, int]]:
    """(sequence, whether it is a loop, by which call) of fixture files."""
    for name in names:
        with (FIXTURES / name).open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                expect = row.get("expect") or {}
                loop = (row.get("label") or row.get("kind")) == "loop" if "label" in row or "kind" in row else False
                loop = loop or expect.get("verdict") in ("block", "stop")
                yield row, loop, row.get("by_call") or expect.get("by_call") or 0
