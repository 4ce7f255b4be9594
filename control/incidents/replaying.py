"""How a replay compares with the run that it plays: the same up to which step, and what comes otherwise there."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import orjson

from agents.policy import divergence
from agents.policy.divergence import Divergence, Step, Told
from control.runs import log
from control.runs.models import Run

_PAGE = 2000


def compare(run: Run) -> dict[str, Any] | None:
    """`{of, mode, from_turn, steps, same, over, end, recorded_end, diverged}`; None for a run that replays none.

    `diverged` is `{step, turn, why, recorded, now}`, null while or if all is the same.
    """
    sides = _sides(run)
    if sides is None:
        return None
    recorded, now, about = sides
    found = divergence.parts(recorded, now)
    return {
        "of": run.replay_of,
        **about,
        "steps": len(now.steps),
        "recorded_steps": len(recorded.steps),
        "same": divergence.same(recorded, now),
        "over": now.end is not None,
        "end": now.end,
        "recorded_end": recorded.end,
        "diverged": _plain(found),
    }


def beside(run: Run, around: int = 8) -> list[tuple[int, Step | None, Step | None]]:
    """The steps of both, side by side, near where they part (else the last ones): `(step, recorded, now)`."""
    sides = _sides(run)
    if sides is None:
        return []
    recorded, now, _ = sides
    longest = max(len(recorded.steps), len(now.steps))
    found = divergence.parts(recorded, now)
    middle = found.step if found else longest
    first = max(0, middle - around)
    last = min(longest, middle + around)
    return [(at + 1, _at(recorded, at), _at(now, at)) for at in range(first, last)]


def _at(one: Told, place: int) -> Step | None:
    return one.steps[place] if place < len(one.steps) else None


def _sides(run: Run) -> tuple[Told, Told, dict[str, Any]] | None:
    """Both logs folded. Empty for a run whose original is gone."""
    if run.replay_of is None:
        return None
    events = list(_events(run.pk))
    start = next((event for event in events if event["kind"] == "run.replayed"), None)
    forked = next((event for event in events if event["kind"] == "run.forked"), None)
    turn = int(forked["data"]["turn"]) if forked else 0
    recorded = divergence.told(_events(run.replay_of), after_turn=turn)
    about = {"mode": start["data"]["mode"] if start else "recorded", "from_turn": turn + 1 if turn else None}
    return recorded, divergence.told(events), about


def _events(run: str) -> Iterator[dict[str, Any]]:
    after = 0
    while bodies := log.read_after(run, after, _PAGE):
        for body in bodies:
            event: dict[str, Any] = orjson.loads(body)
            after = event["seq"]
            yield event


def _plain(found: Divergence | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)
