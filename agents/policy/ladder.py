"""The ladder on repeats that the model insists on: it looks at arguments alone, one streak per tool."""

from typing import Any

from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.policies import Ladder
from agents.verdicts import Rung

_TOOLS = 256


class Streaks:
    """A repeat counts only if the earlier result had been read: once per batch. Another identity starts anew."""

    def __init__(self) -> None:
        # tool -> fingerprint, count, batch, first call, last call, what it answered
        self._rows: Bounded[list[Any]] = Bounded(_TOOLS)
        self.escalated = 0

    def judge(self, act: Act) -> Finding | None:
        if act.exempt:
            return None
        row = self._rows.get(act.tool)
        if row is None or row[0] != act.exact:
            self._rows.put(act.tool, [act.exact, 1, act.batch, act.call, act.call, "", 0, 0.0])
            return None
        if row[2] != act.batch:
            row[1], row[2] = row[1] + 1, act.batch
            row[6], row[7] = row[6] + act.spent_tokens, row[7] + act.spent_usd
        row[4] = act.call
        return Finding(
            rule="ladder",
            count=row[1],
            fingerprint=act.exact,
            first=row[3],
            last=row[4],
            what="the same call",
            said=row[5],
            tokens=row[6],
            usd=row[7],
        )

    def learn(self, act: Act, said: str) -> None:
        row = self._rows.get(act.tool)
        if row is not None and row[0] == act.exact:
            row[5] = said

    def rung(self, ladder: Ladder, count: int, at_most: int) -> Rung | None:
        if ladder.stop and count >= ladder.stop:
            return Rung.STOP
        if ladder.escalate and count >= ladder.escalate and self.escalated < at_most:
            self.escalated += 1
            return Rung.ESCALATE
        if ladder.block and count >= ladder.block:
            return Rung.BLOCK
        if ladder.steer and count >= ladder.steer:
            return Rung.STEER
        return Rung.OBSERVE if ladder.observe and count >= ladder.observe else None

    def person_spoke(self) -> None:
        self._rows.clear()

    def dump(self) -> list[Any]:
        return [self._rows.dump(), self.escalated]

    def load(self, rows: list[Any]) -> None:
        self._rows.load(rows[0])
        self.escalated = rows[1]
