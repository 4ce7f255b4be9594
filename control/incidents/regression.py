"""A run as a regression test: its calls, small and redacted, its policy, and a test that wants it stopped at that step.

The test needs pytest and `python -m agents judge`, no console and no database.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import Any

import orjson
import tomli_w

from agents.errors import ConfigError
from agents.policy.policies import policy_from
from agents.policy.recorded import judge_sequence
from agents.policy.redaction import make_safe_value
from agents.spec import LIMIT_NAMES
from control.fleet import policies
from control.incidents.backtest.reading import stories
from control.runs import specs
from control.runs.models import Run
from control.runs.refusals import StartRefused

# What the guard hears in an answer stands at its beginning; if it does not, the next step keeps all of it.
_SHORT = 240
_JUDGED = ("fuses", "stop_when", "ladder", "rules", "identity", "tools", "escalate", "shadow", "note")
_OF_GUARD = frozenset({"max_steps", "max_tokens", "max_cost"})
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """`files`: name -> text."""

    name: str
    files: Mapping[str, str]

    def zipped(self) -> bytes:
        """All of it in one file, the same bytes for the same run."""
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.files.items():
                archive.writestr(zipfile.ZipInfo(f"{self.name}/{name}"), text)
        return held.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trip:
    call: int
    rule: str
    why: str


def export(run: Run, policy: str | None = None) -> Exported:
    """Raises StartRefused: unknown_policy, no_calls, no_trip, not_reproducible."""
    story = dict(stories([run.pk])).get(run.pk)
    row = story.sequence.row(run.pk) if story else {"calls": []}
    if all(call["tool"].startswith("__") for call in row["calls"]):
        raise StartRefused("no_calls", "This run's log holds no tool call with an answer to test.", status=409)
    known_as, body = _policy(run, policy)
    try:
        trip = _trip(row, body)
    except ConfigError as error:
        raise StartRefused(error.kind, error.message, status=409) from error
    if trip is None:
        raise StartRefused(
            "no_trip",
            f"Under {known_as} the recorded calls trip nothing: the run was ended by something else "
            f"({run.exit_reason or run.status}), or not by this policy. Name one that stops it (policy).",
            status=409,
        )
    row = {**row, "calls": row["calls"][: trip.call]}
    small = next((made for made in _smaller(row) if _trip(made, body) == trip), None)
    if small is None:
        raise StartRefused(
            "not_reproducible",
            "With its secrets hidden the run is judged otherwise, so no test can be made of it that may be shared.",
            status=409,
        )
    name = f"run_{run.pk[-12:]}"
    files = {
        f"test_{name}.py": _test(run, name, known_as, trip),
        f"{name}.jsonl": orjson.dumps(small).decode() + "\n",
        f"{name}.toml": f"# The policy {known_as} as run {run.pk} held it.\n{tomli_w.dumps(body)}",
    }
    return Exported(name=name, files=files)


def _policy(run: Run, wanted: str | None) -> tuple[str, dict[str, Any]]:
    """What the guard judges by: the frozen policy with the run's own limits, or the named one as it stands."""
    if wanted is not None:
        row = policies.current(wanted) if "\x00" not in wanted else None
        if row is None:
            raise StartRefused(
                "unknown_policy", f"There is no policy {wanted!r:.120}. List them with GET /api/policies."
            )
        return row.name, _plain(row.body)
    spec = specs.of(run)
    body = _plain(spec.policy_body)
    fuses = dict(body.get("fuses") or {})
    for name in LIMIT_NAMES:
        limit = getattr(spec.limits, name)
        if limit is not None and name in _OF_GUARD and limit.source not in ("policy", "default", "parent"):
            fuses[name] = _number(limit.value)
    return spec.policy, {**body, "fuses": fuses} if fuses else body


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """Only what judging needs, and nothing that TOML has no word for."""
    return {name: _filled(body[name]) for name in _JUDGED if body.get(name) is not None}


def _filled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(one) for name, one in value.items() if one is not None}
    return value


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _trip(row: Row, body: Mapping[str, Any]) -> _Trip | None:
    verdicts = judge_sequence(row, policy_from(body, "own"))["verdicts"]
    stop = next((one for one in verdicts if one["rung"] == "stop" and not one.get("shadow")), None)
    return None if stop is None else _Trip(call=stop["call"], rule=stop["rule"], why=_first_words(stop["explanation"]))


def _first_words(text: str) -> str:
    """Told in the test's own text, so it may not hold what ends a docstring or a line."""
    return re.sub(r"[^\w .,;:()$%+-]", " ", text)[:160].strip()


# --- small and without secrets ---------------------------------------------------------------------------------------


def _smaller(row: Row) -> Iterator[Row]:
    """The row without secrets, the smallest first; which of them still trips alike, judging it again must tell."""
    safe = make_safe_value(row).value
    yield _with(safe, lambda text: text if len(text) <= _SHORT else f"{text[:_SHORT]}…", contents=True)
    yield _with(safe, lambda text: text, contents=True)
    yield safe


def _with(row: Row, result: Callable[[str], str], *, contents: bool) -> Row:
    """With results cut, and each content of a file as a letter: which were equal is all that counts of them."""
    letters: dict[str, str] = {}
    calls = []
    for call in row["calls"]:
        made = {name: value for name, value in call.items() if not (contents and name == "before")}
        if isinstance(made.get("result"), str):
            made["result"] = result(made["result"])
        if contents and isinstance(made.get("edits"), Mapping):
            made["edits"] = {path: _letter(text, letters) for path, text in made["edits"].items()}
        calls.append(made)
    return {**row, "calls": calls}


def _letter(text: str | None, letters: dict[str, str]) -> str | None:
    return None if text is None else letters.setdefault(text, f"content {len(letters) + 1}")


# --- the test --------------------------------------------------------------------------------------------------------

_TEST = '''"""A run that went in circles must be stopped at call {call}, by {rule}.

Run {run} of agent {agent}, {day}, policy {policy}: {why}.
Made from its log, redacted. Needs nothing but pytest and `python -m agents judge`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The policy that is judged: the one beside this file, or the one that is in force where you run it.
POLICY = os.environ.get("REGRESSION_POLICY") or str(HERE / "{name}.toml")
CALL, RULE = {call}, "{rule}"


def judged():
    command = [sys.executable, "-m", "agents", "judge", "--policy", POLICY]
    done = subprocess.run(command, input=(HERE / "{name}.jsonl").read_bytes(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_{name}_is_stopped_at_call_{call}():
    stops = [one for one in judged()["verdicts"] if one["rung"] == "stop"]
    assert stops, "nothing stops this run any more"
    assert (stops[0]["call"], stops[0]["rule"]) == (CALL, RULE)
'''


def _test(run: Run, name: str, policy: str, trip: _Trip) -> str:
    return _TEST.format(
        call=trip.call,
        rule=trip.rule,
        run=run.pk,
        agent=_first_words(run.agent),
        day=run.created_at.astimezone(UTC).date(),
        policy=_first_words(policy),
        why=trip.why.rstrip("."),
        name=name,
    )
