"""Reads what is new in the logs of all runs and opens incidents where a rule speaks: each event once.

The cursors move in the transaction in which the incidents are opened, so neither a crash nor a second desk opens one
twice. Beside it the rules that no event can tell: a run that waits too long, and the fleet as a whole.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from agents.spec import Status
from control.incidents import cases, fleet
from control.incidents.cases import Case
from control.incidents.findings import KINDS, Attempt, Found, Over, Said, Watched
from control.incidents.models import Gauge, Incident, State
from control.runs import following, hints
from control.runs.clock import database_now
from control.runs.following import Behind
from control.runs.models import Run

READER = "incidents"
RUNS_AT_ONCE = 200
KEPT = 2_000
SPEND = "fleet:spend"
ERRORS = "provider:"
_PEOPLE = ("question", "approval", "quota")

_kept: OrderedDict[str, Watched] = OrderedDict()


def take_in() -> int:
    """One look at the logs; how many runs were further than before."""
    runs = following.behind(READER, RUNS_AT_ONCE)
    if not runs:
        return 0
    said = _fold(runs)
    speaking = [one.run for one in runs if any(not isinstance(item, Attempt) for item in said[one.run][1])]
    about = Run.objects.filter(pk__in=speaking).defer("spec", "final").in_bulk()
    with transaction.atomic():
        moved = following.advance(READER, [(one, one.last_seq) for one in runs])
        if moved:
            now = database_now()
            for run, (_, items) in said.items():
                if run in about:
                    _tell(about[run], items, now)
            _count([item for _, items in said.values() for item in items if isinstance(item, Attempt)], now)
        else:
            transaction.set_rollback(True)
    for one in runs:
        if moved:
            _keep(one, said[one.run][0])
        else:
            # Another desk was faster: what we remember may be ahead of what counts.
            _kept.pop(one.run, None)
    return len(runs)


def _fold(runs: Sequence[Behind]) -> dict[str, tuple[Watched, list[Said]]]:
    """What the new events of each run say; a run that is not remembered is read from its beginning."""
    found = {}
    for one, watched, events in following.read([(one, _remembered(one)) for one in runs], KINDS):
        items: list[Said] = []
        for event in events:
            said = list(watched.take(event))
            if event.seq > one.seen:
                items += said
        watched.seq = one.last_seq
        found[one.run] = (watched, items)
    return found


def _remembered(one: Behind) -> Watched:
    watched = _kept.pop(one.run, None)
    return watched if watched is not None and watched.seq == one.seen else Watched()


def _keep(one: Behind, watched: Watched) -> None:
    if one.ended:
        return
    _kept[one.run] = watched
    while len(_kept) > KEPT:
        _kept.popitem(last=False)


def forget() -> None:
    """As after a start of the process."""
    _kept.clear()


def _tell(run: Run, items: Iterable[Said], now: datetime) -> None:
    for item in items:
        if isinstance(item, Found):
            cases.open_(_case(run, item), now)
            # Nothing is new in the log; but whoever looks at the fleet counts what is open anew.
            hints.announce_later(run.root, run.epoch, run.pk, run.last_seq, run.last_seq, ())
        elif isinstance(item, Over):
            cases.clear(key_of(run.pk, item.rule), item.at, now, final=item.final)


def key_of(run: str, rule: str) -> str:
    return f"run:{run}:{rule}"


def _case(run: Run, found: Found) -> Case:
    if found.thing:
        return _shared_case(run, found)
    return Case(
        key=key_of(run.pk, found.rule),
        rule=found.rule,
        title=found.title,
        at=found.at,
        summary=found.summary,
        facts=found.facts,
        evidence=found.evidence,
        run=run.pk,
        root=run.root,
        agent=run.agent,
        project=run.project,
        labels=run.labels,
    )


def _shared_case(run: Run, found: Found) -> Case:
    """About all runs of an agent, or of the fleet: none of them is the one to look at."""
    whose, _, day = found.thing.partition(":")
    of_agent = whose == "agent"
    return Case(
        key=f"agent:{run.agent}:{day}:{found.rule}" if of_agent else f"{found.thing}:{found.rule}",
        rule=found.rule,
        title=found.title,
        at=found.at,
        summary=found.summary,
        facts=(*found.facts, ("a run that it stopped", run.pk)),
        agent=run.agent if of_agent else "",
        project=run.project if of_agent else "",
    )


def _count(attempts: list[Attempt], now: datetime) -> None:
    """Add attempts to the points of the fleet and of each provider."""
    more: dict[str, list[fleet.Point]] = defaultdict(list)
    for attempt in attempts:
        slot = fleet.slot_of(attempt.at)
        if attempt.cost_usd:
            more[SPEND].append((slot, attempt.cost_usd, 1.0))
        if attempt.provider:
            more[f"{ERRORS}{attempt.provider[:100]}"].append((slot, float(attempt.failed), 1.0))
    for name, points in sorted(more.items()):
        gauge, _ = Gauge.objects.select_for_update().get_or_create(name=name, defaults={"changed_at": now})
        gauge.points = fleet.added([tuple(point) for point in gauge.points], points)
        gauge.changed_at = now
        gauge.save()


# --- what no event tells --------------------------------------------------------------------------------------


def look_around() -> None:
    """Rules of time and of the fleet, reminders, and what resolves by itself."""
    now = database_now()
    with transaction.atomic():
        _look_at_waiting(now)
        _look_at_fleet(now)
    cases.settle(now)


def _look_at_waiting(now: datetime) -> None:
    late = now - timedelta(minutes=settings.ALERT_WAITING_MINUTES)
    waiting = Run.objects.filter(status=Status.WAITING.value, waiting_for__in=_PEOPLE)
    known = set(Incident.objects.filter(rule="waiting").exclude(state=State.RESOLVED).values_list("run_id", flat=True))
    for run in waiting.filter(last_activity_at__lt=late).exclude(pk__in=known).defer("spec", "final")[:200]:
        key = key_of(run.pk, "waiting")
        since = run.last_activity_at or now
        # Who resolved it knows that it waits; only another wait is news.
        if not Incident.objects.filter(key=key, opened_at__gte=since).exists():
            cases.open_(_waiting(run, key, since), now)
    still = set(waiting.filter(pk__in=known).values_list("pk", flat=True))
    for gone in known - still:
        cases.clear(key_of(str(gone), "waiting"), now, now, final=True)


def _waiting(run: Run, key: str, since: datetime) -> Case:
    what = {"question": "an answer", "approval": "an approval", "quota": "quota"}[run.waiting_for or "question"]
    found = Found(
        rule="waiting",
        at=since + timedelta(minutes=settings.ALERT_WAITING_MINUTES),
        title=f"Waits for {what} since {since:%H:%M} UTC",
        facts=(("waits for", what), ("since", f"{since:%Y-%m-%d %H:%M} UTC")),
    )
    return _case(run, found)


def _look_at_fleet(now: datetime) -> None:
    lively = Q(changed_at__gte=now - timedelta(minutes=15))
    names = ["errors", "spend"]
    open_keys = set(Incident.objects.filter(rule__in=names).exclude(state=State.RESOLVED).values_list("key", flat=True))
    for gauge in Gauge.objects.filter(lively | Q(name__in=[key.rpartition(":")[0] for key in open_keys])):
        points = [tuple(point) for point in gauge.points]
        if gauge.name == SPEND:
            rule, reading = "spend", fleet.spend(points, now)
        elif gauge.name.startswith(ERRORS):
            rule, reading = "errors", fleet.errors(gauge.name.removeprefix(ERRORS), points, now)
        else:
            continue
        _heed(gauge, f"{gauge.name}:{rule}", rule, reading, open_keys, now)


def _heed(gauge: Gauge, key: str, rule: str, reading: fleet.Reading, open_keys: set[str], now: datetime) -> None:
    """Open, lead on or clear the incident of a gauge. What a person resolved stays so until it was calm in between."""
    seen: Mapping[str, object] = gauge.seen
    if reading.bad and key not in open_keys:
        if not seen.get("bad"):
            cases.open_(Case(key=key, rule=rule, title=reading.title, at=now, facts=reading.facts), now)
            Gauge.objects.filter(pk=gauge.pk).update(seen={"bad": True})
    elif reading.bad:
        Incident.objects.filter(key=key, cleared_at__isnull=False).exclude(state=State.RESOLVED).update(cleared_at=None)
    elif reading.calm:
        if key in open_keys:
            cases.clear(key, now, now)
        if seen.get("bad"):
            Gauge.objects.filter(pk=gauge.pk).update(seen={})
