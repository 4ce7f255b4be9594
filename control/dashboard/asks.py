"""Open questions and approvals: of one run and those below it, and of the whole fleet for the inbox."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson
from django.db.models import QuerySet

from agents.commands import CommandKind
from agents.spec import Status
from control.accounts import snoozes
from control.accounts.models import User
from control.runs import rows
from control.runs.models import Command, Event, Run

# A card is sent with every change beside it.
ARGS_SHOWN = 60_000
SHOWN = 100
# So long before the end an ask is marked.
WARN_BEFORE = timedelta(minutes=10)
# Answers that are told to whoever was about to answer too.
LATELY = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One open question or approval. `args`: laid out, and whole if `whole`. `ends`: when it is answered by nobody any
    more (None: it waits for ever), `soon` that this is near. `answer`: given, and not yet taken in by the run. `root`:
    the task of the tree's first run, for a sub-agent."""

    run: Run
    call: str
    kind: str
    text: str
    choices: list[str]
    at: datetime
    own: bool = False
    name: str = ""
    args: str = ""
    whole: bool = True
    ends: datetime | None = None
    soon: bool = False
    snoozed: datetime | None = None
    answer: "Answer | None" = None
    root: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Who answered a call, when, and what."""

    call: str
    by: str
    at: datetime
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbox:
    """`asks` want this person now; `later` were put off by them, `sent` are answered and on their way. `gone`: who
    answered what of late. `more`: how many are not listed."""

    asks: list[Ask]
    later: list[Ask]
    sent: list[Ask]
    gone: dict[str, str]
    more: int


def waiting() -> "QuerySet[Run]":
    """Runs that wait for a person's word."""
    return Run.objects.filter(status=Status.WAITING.value, waiting_for__in=("question", "approval"))


def below(run: Run, family: Iterable[Run]) -> list[Ask]:
    """What a run and its descendants ask, also what has its answer on the way."""
    asking = [
        other
        for other in family
        if other.status == Status.WAITING.value
        and other.waiting_for in ("question", "approval")
        and run.id in other.path.split("/")
    ]
    found = [ask for other in asking if (ask := _ask(other)) is not None]
    runs = [ask.run.id for ask in found]
    answers = _answers(Command.objects.filter(open=True, run_id__in=runs)) if runs else {}
    return [replace(ask, own=ask.run.id == run.id, answer=answers.get(ask.call)) for ask in found]


def inbox(user: User, now: datetime) -> Inbox:
    """Everything that waits for a person, what ends first at the top, then what has waited longest."""
    runs = list(waiting().order_by("last_activity_at", "id").defer("final")[: SHOWN + 1])
    found = [ask for run in runs[:SHOWN] if (ask := _ask(run, now)) is not None]
    answers = _answers(Command.objects.filter(open=True, run_id__in=[run.pk for run in runs]))
    below = {run.root for run in runs if run.parent}
    roots = dict(Run.objects.filter(pk__in=below).values_list("pk", "task"))
    put_off = snoozes.of(user, [ask.call for ask in found], now)
    told = [
        replace(
            ask,
            answer=answers.get(ask.call),
            snoozed=put_off.get(ask.call),
            root=roots.get(ask.run.root, "") if ask.run.parent else "",
        )
        for ask in found
    ]
    told.sort(key=lambda ask: (not ask.soon, (ask.ends if ask.soon else None) or ask.at, ask.call))
    return Inbox(
        asks=[ask for ask in told if not ask.answer and not ask.snoozed],
        later=[ask for ask in told if not ask.answer and ask.snoozed],
        sent=[ask for ask in told if ask.answer],
        gone=_gone(now),
        more=waiting().count() - SHOWN if len(runs) > SHOWN else 0,
    )


def count(user: User, now: datetime) -> int:
    """How many asks want this person now; cheap enough for every page."""
    calls = list(waiting().values_list("waiting_call", "id")[:1000])
    if not calls:
        return 0
    put_off = snoozes.of(user, [call for call, _ in calls if call], now)
    sent = Command.objects.filter(open=True, kind=CommandKind.ANSWER.value, run_id__in=[run for _, run in calls])
    answered = {str(args.get("call")) for args in sent.values_list("args", flat=True)}
    return sum(1 for call, _ in calls if call not in put_off and call not in answered)


def answered(command: Command) -> Answer:
    """An answer in words: `“yes”`, `approved`, `denied: not today`."""
    args: Mapping[str, Any] = command.args
    decision = args.get("decision")
    if decision is None:
        says = f"“{str(args.get('text', ''))[:200]}”"
    else:
        word = {"approve": "approved", "edit": "approved with other arguments", "deny": "denied"}
        says = word.get(str(decision), "decided") + (f": {args['reason']}" if args.get("reason") else "")
    return Answer(call=str(args.get("call", "")), by=command.by, at=command.issued_at, says=says)


def _answers(commands: "QuerySet[Command]") -> dict[str, Answer]:
    """By call; the first one counts."""
    found: dict[str, Answer] = {}
    for command in commands.filter(kind=CommandKind.ANSWER.value).order_by("id"):
        answer = answered(command)
        found.setdefault(answer.call, answer)
    return found


def _gone(now: datetime) -> dict[str, str]:
    lately = Command.objects.filter(issued_at__gte=now - LATELY)
    return {call: f"{answer.by}: {answer.says}" for call, answer in _answers(lately).items()}


def _ask(run: Run, now: datetime | None = None) -> Ask | None:
    event = Event.objects.filter(run_id=run.id, kind="run.waiting").order_by("-seq").values_list("body", "at").first()
    if event is None:
        return None
    data = orjson.loads(event[0])["data"]
    args, whole = _laid_out(data.get("args"))
    ends = _ends(run, data.get("until"), now) if now is not None else None
    return Ask(
        run=run,
        call=str(data.get("call") or run.waiting_call or ""),
        kind=str(data.get("for")),
        text=str(data.get("text") or ""),
        choices=[str(choice) for choice in data.get("choices") or []],
        at=event[1],
        name=str(data.get("name") or ""),
        args=args,
        whole=whole,
        ends=ends,
        soon=ends is not None and now is not None and ends - now <= WARN_BEFORE,
    )


def _ends(run: Run, until: Any, now: datetime) -> datetime | None:
    """When nobody can answer any more: at the end that was named, or when the run's own time is up."""
    ends: list[datetime] = []
    if isinstance(until, str):
        try:
            ends.append(datetime.fromisoformat(until))
        except ValueError:
            pass
    limit = next((fuse["limit"] for fuse in rows.fuses(run, now) if fuse["name"] == "max_seconds"), None)
    if limit is not None and run.started_at is not None:
        try:
            ends.append(run.started_at + timedelta(seconds=float(Decimal(limit))))
        except (InvalidOperation, OverflowError):
            pass
    return min(ends, default=None)


def _laid_out(raw: Any) -> tuple[str, bool]:
    """Arguments as a person reads and edits them, and whether they are all there."""
    text = str(raw or "")
    try:
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text[:ARGS_SHOWN], not text
    return text[:ARGS_SHOWN], len(text) <= ARGS_SHOWN


def wants(asks: Sequence[Ask]) -> str:
    """How many, in words."""
    if not asks:
        return "Nobody waits for you"
    return "One run waits for you" if len(asks) == 1 else f"{len(asks)} runs wait for you"
