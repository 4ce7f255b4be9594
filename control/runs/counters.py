"""Keeps the running totals of `/metrics`: the desk reads what is new in the logs and adds it up, each event once.

The totals and the cursors move in one transaction, so neither a crash nor a second desk counts twice; and because they
are kept apart from the runs, dropping old runs takes nothing from them.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence

import orjson
from django.db import connection, transaction

from agents.kinds import FINAL_KINDS
from control.runs import following
from control.runs.chores import chore, do_soon
from control.runs.counting import Counted, Key, Sums
from control.runs.families import FAMILIES, MOST_LABELS, OTHER
from control.runs.following import Behind
from control.runs.models import Counter

READER = "counters"
RUNS_AT_ONCE = 200
KEPT = 2000
KINDS = frozenset(
    {
        "run.queued",
        "run.replayed",
        "run.requeued",
        "run.started",
        "turn.started",
        "turn.completed",
        "call.started",
        "call.retried",
        "call.completed",
        "credential.rotated",
        "model.fell_back",
        "verdict.issued",
    }
    | FINAL_KINDS
)

_UPSERT = (
    "INSERT INTO runs_counter (family, labels, part, value) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (family, labels, part) DO UPDATE SET value = runs_counter.value + excluded.value"
)

# What this process remembers of runs between two looks; a run that is missing here is read from its beginning.
_kept: OrderedDict[str, Counted] = OrderedDict()


@chore("counters", every_s=1.0)
def count() -> bool:
    """Add up what is new; whether anything was."""
    runs = following.behind(READER, RUNS_AT_ONCE)
    if not runs:
        return False
    sums = Sums()
    taken = _count_each(runs, sums)
    with transaction.atomic():
        moved = following.advance(READER, [(one, one.last_seq) for one in runs])
        if moved:
            _write(sums.parts)
        else:
            transaction.set_rollback(True)
    if not moved:
        # Another desk was faster with one of them: what we remember may be ahead of what counts.
        for run in taken:
            _kept.pop(run, None)
        return True
    for one in runs:
        _keep(one, taken[one.run])
    if len(runs) == RUNS_AT_ONCE:
        do_soon("counters")
    return True


def _count_each(runs: Sequence[Behind], sums: Sums) -> dict[str, Counted]:
    taken = {}
    unheard = Sums()
    for one, counted, events in following.read([(one, _remembered(one)) for one in runs], KINDS):
        for event in events:
            counted.take(event, sums if event.seq > one.seen else unheard, one.stop_seconds)
        sums.add("events_appended_total", by=one.last_seq - one.seen)
        taken[one.run] = counted
    return taken


def _remembered(one: Behind) -> Counted:
    """What is known of a run up to its cursor; one that is not remembered is read from its beginning."""
    counted = _kept.pop(one.run, None)
    return counted if counted is not None and counted.seq == one.seen else Counted()


def _keep(one: Behind, counted: Counted) -> None:
    if one.ended:
        return
    # Events of other kinds count too for how far we are.
    counted.seq = one.last_seq
    _kept[one.run] = counted
    while len(_kept) > KEPT:
        _kept.popitem(last=False)


def _write(parts: Mapping[Key, float]) -> None:
    known = _known(families={family for family, _, _ in parts})
    rows: dict[tuple[str, str, str], float] = defaultdict(float)
    for (family, labels, part), value in parts.items():
        rows[family, _bounded(family, labels, known[family]), part] += value
    with connection.cursor() as cursor:
        # In one order everywhere: two desks then wait for each other and never in a ring.
        cursor.executemany(_UPSERT, [(*key, value) for key, value in sorted(rows.items())])


def _known(families: set[str]) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {family: set() for family in families}
    for family, labels in Counter.objects.filter(family__in=families).values_list("family", "labels").distinct():
        known[family].add(labels)
    return known


def _bounded(family: str, values: tuple[str, ...], known: set[str]) -> str:
    """The labels as a row has them; with `other` in the free ones once the family has enough."""
    kind = FAMILIES[family]
    labels = _text(dict(zip(kind.labels, values, strict=True)))
    if labels in known or len(known) < MOST_LABELS or not kind.free:
        known.add(labels)
        return labels
    return _text({name: OTHER if name in kind.free else value for name, value in zip(kind.labels, values, strict=True)})


def _text(labels: dict[str, str]) -> str:
    return orjson.dumps(labels, option=orjson.OPT_SORT_KEYS).decode()


def totals() -> dict[str, dict[str, dict[str, float]]]:
    """family -> labels (JSON) -> part -> value."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for family, labels, part, value in Counter.objects.values_list("family", "labels", "part", "value"):
        found.setdefault(family, {}).setdefault(labels, {})[part] = value
    return found


def lag() -> int:
    """Events in the logs that are not counted yet, of the runs that a look takes at once."""
    return sum(one.last_seq - one.seen for one in following.behind(READER, RUNS_AT_ONCE))
