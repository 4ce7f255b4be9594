"""Files that went back to a content they had held: their states as letters, and what changed between these."""

import difflib
from collections.abc import Mapping, Sequence
from itertools import pairwise

from agents.policy.sequences import ContentOf
from control.incidents.postmortem import record, report
from control.incidents.postmortem.words import block, told

FILES, CHANGES = 8, 3
# Telling two contents apart takes time that grows with both; beyond this only the states are shown.
_LARGEST, _LINES = 60_000, 60
_GONE = "gone"


def letter(number: int) -> str:
    """A, B, … Z, AA, AB, …"""
    made = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        made = chr(65 + rest) + made
    return made


def states_of(writes: Sequence[record.Write]) -> dict[int, tuple[str, bool]]:
    """By the `seq` of each write: the letter of the content that the file took, and whether it had held it before."""
    held: dict[str, dict[str, str]] = {}
    now: dict[str, str] = {}
    found: dict[int, tuple[str, bool]] = {}
    for write in writes:
        letters = held.setdefault(write.path, {})
        if write.before is not None:
            now.setdefault(write.path, letters.setdefault(write.before, letter(len(letters))))
        after = write.after or _GONE
        known = after in letters
        sign = letters.setdefault(after, letter(len(letters)))
        # The same content twice in a row is no change.
        found[write.seq] = sign, known and now.get(write.path) != sign
        now[write.path] = sign
    return found


def oscillations(writes: Sequence[record.Write], content_of: ContentOf) -> list[report.Oscillation]:
    """The files with the most ways back first; files that never went back are none."""
    states = states_of(writes)
    by_path: dict[str, list[record.Write]] = {}
    for write in writes:
        by_path.setdefault(write.path, []).append(write)
    found = [(sum(states[one.seq][1] for one in group), group) for group in by_path.values()]
    back = sorted([one for one in found if one[0]], key=lambda one: -one[0])
    return [_oscillation(group, returns, states, content_of) for returns, group in back[:FILES]]


def _oscillation(
    group: list[record.Write], returns: int, states: Mapping[int, tuple[str, bool]], content_of: ContentOf
) -> report.Oscillation:
    letters = {states[one.seq][0]: one.after or "" for one in group}
    before = group[0].before
    start = None
    if before is not None:
        start = next((sign for sign, sha in letters.items() if sha == before), "A")
        letters = {start: before} | letters
    return report.Oscillation(
        path=told(group[0].path),
        states=dict(sorted(letters.items(), key=lambda one: (len(one[0]), one[0]))),
        start=start,
        writes=tuple(
            report.Write(at=one.at, seq=one.seq, turn=one.turn, state=states[one.seq][0], back=states[one.seq][1])
            for one in group
        ),
        returns=returns,
        changes=tuple(_changes(group, start, letters, states, content_of)),
    )


def _changes(
    group: list[record.Write],
    start: str | None,
    letters: Mapping[str, str],
    states: Mapping[int, tuple[str, bool]],
    content_of: ContentOf,
) -> list[report.Change]:
    """The most frequent steps from one state to another, whichever way they went."""
    signs = [*([start] if start else []), *(states[one.seq][0] for one in group)]
    times: dict[tuple[str, str], int] = {}
    for one, other in pairwise(signs):
        if one != other:
            pair = (one, other) if (other, one) not in times else (other, one)
            times[pair] = times.get(pair, 0) + 1
    artifacts = {one.after: one.artifact for one in group if one.after and one.artifact}
    often = sorted(times.items(), key=lambda one: -one[1])[:CHANGES]
    found = []
    for (one, other), number in often:
        texts = [_text(letters[sign], artifacts, content_of) for sign in (one, other)]
        found.append(report.Change(before=one, after=other, times=number, diff=_diff(texts, one, other)))
    return found


def _text(sha: str, artifacts: Mapping[str, Mapping[str, object] | None], content_of: ContentOf) -> str | None:
    """The content in readable form, secrets hidden while it is whole: half of one matches no pattern."""
    if not sha:
        return ""
    content = content_of(artifacts.get(sha) or {"sha256": sha})
    if content is None or len(content) > _LARGEST or b"\x00" in content:
        return None
    return block(content.decode("utf-8", "replace"), _LARGEST * 2)


def _diff(texts: list[str | None], one: str, other: str) -> str | None:
    before, after = texts
    if before is None or after is None:
        return None
    lines = list(
        difflib.unified_diff(
            before.splitlines(), after.splitlines(), f"state {one}", f"state {other}", lineterm="", n=2
        )
    )
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], f"… {len(lines) - _LINES} more lines"]
    return "\n".join(lines)
