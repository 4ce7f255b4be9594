"""What follows from an append, for all its runs at once: receipts go forward, commands close, stops are told by whom.

Hundreds of runs end together when a kill switch is pulled: nothing here asks the database once per run.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection
from django.db.models import Field, Q

from agents.commands import Scope
from control.runs import receipts
from control.runs.fold import Fold, ReceiptStep
from control.runs.models import Command, Receipt, Run, WorkspaceLease

_COLUMNS = ["state", "code", "turn", "delivered_at", "stopping_at", "done_at"]
# How many parameters a statement may have is bounded on SQLite.
_AT_ONCE = 400
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of one run. `path` names its ancestors, down to itself."""

    status: str
    ts: datetime
    path: tuple[str, ...]


def credit(folds: Iterable[Fold]) -> None:
    """Of runs that an interrupt has ended: whether it was the kill switch, and how long it took since the request."""
    ended = [fold for fold in folds if fold.ended_by]
    if not ended:
        return
    asked = Command.objects.filter(pk__in={fold.ended_by for fold in ended}).values_list("id", "bulk", "issued_at")
    known = {command: (bulk, issued_at) for command, bulk, issued_at in asked}
    for fold in ended:
        bulk, issued_at = known.get(str(fold.ended_by), (None, None))
        if bulk is not None and fold.row.exit_reason == "operator":
            fold.row.exit_reason = "kill_switch"
        if issued_at is not None and fold.row.finished_at is not None:
            fold.row.stop_seconds = max((fold.row.finished_at - issued_at).total_seconds(), 0.0)


def settle(folds: Mapping[str, Fold], ended: Collection[str], now: datetime) -> None:
    """Write what these runs have come to with their commands. Everything an ended run still owed is settled."""
    steps = {run: fold.receipts for run, fold in folds.items() if fold.receipts}
    if not steps and not ended:
        return
    paths = dict(Run.objects.filter(pk__in=list(ended)).values_list("id", "path")) if ended else {}
    ends = {
        run: End(
            status=folds[run].row.status,
            ts=folds[run].row.finished_at or now,
            path=tuple(path.split("/")),
        )
        for run, path in paths.items()
    }
    record(steps, ends)
    if ended:
        WorkspaceLease.objects.filter(run_id__in=list(ended)).delete()


def record(steps: Mapping[str, Sequence[ReceiptStep]], ends: Mapping[str, End], *, only_named: bool = False) -> None:
    """Lead the receipts on by these steps of these runs, then by their ends; close the commands that are over with.
    `only_named`: ends settle nothing but what the steps name, also if it is closed by now.

    The commands are locked before their receipts are read: of two runs of one tree that settle the same command at
    once, the second sees what the first one wrote.
    """
    named = {step.command for each in steps.values() for step in each}
    book = _Book(commands=_lock(named | _notes(steps), {} if only_named else ends))
    book.read(named)
    for run, each in steps.items():
        for step in each:
            book.take(run, step)
    for run, end in ends.items():
        book.end(run, end, closed_too=named if only_named else ())
    book.write()
    review(book.commands.values(), book.by_command)


def _notes(steps: Mapping[str, Sequence[ReceiptStep]]) -> set[str]:
    """The notes that withdrawals among these steps are about."""
    asking = {step.command for each in steps.values() for step in each if step.state == "withdraw"}
    if not asking:
        return set()
    found = Command.objects.filter(pk__in=asking).values_list("args", flat=True)
    return {str(args.get("command", "")) for args in found}


def _lock(named: Collection[str], ends: Mapping[str, End]) -> dict[str, Command]:
    """These commands, and open ones that reach a run which has ended; in order of issue, as everybody locks them."""
    wanted = Q(pk__in=list(named))
    if ends:
        wanted |= Q(open=True, run_id__in={run for end in ends.values() for run in end.path})
    found = Command.objects.select_for_update(no_key=True).filter(wanted).order_by("id")
    return {command.pk: command for command in found}


@dataclass(slots=True, kw_only=True)
class _Book:
    """The receipts of some locked commands, led on in memory and written together."""

    commands: dict[str, Command]
    rows: dict[Key, Receipt] = field(default_factory=dict)
    changed: dict[Key, Receipt] = field(default_factory=dict)
    by_run: dict[str, list[Command]] | None = None

    def read(self, named: Collection[str]) -> None:
        for receipt in Receipt.objects.filter(command_id__in={*self.commands, *named}):
            self.rows[receipt.command_id, receipt.run_id] = receipt

    @property
    def by_command(self) -> dict[str, dict[str, Receipt]]:
        found: dict[str, dict[str, Receipt]] = {}
        for (command, run), receipt in self.rows.items():
            found.setdefault(command, {})[run] = receipt
        return found

    def take(self, run: str, step: ReceiptStep) -> None:
        if step.state == "withdraw":
            self._withdraw(run, step)
        else:
            self._advance(step.command, run, step.state, step.ts, code=step.code, turn=step.turn)

    def end(self, run: str, end: End, closed_too: Collection[str] = ()) -> None:
        """An interrupt that the run obeyed is done, everything else that it still owed is refused."""
        for command in self._naming(run, *end.path):
            if (
                not (command.open or command.pk in closed_too)
                or not _reaches(command, run, end.path)
                or self._settled(command.pk, run)
            ):
                continue
            state, code = receipts.at_end(command, end.status)
            self._advance(command.pk, run, state, end.ts, code=code)

    def _naming(self, *runs: str) -> list[Command]:
        """The commands that name one of these runs. Hundreds end together, and each asks: so they stand by run."""
        if self.by_run is None:
            self.by_run = {}
            for command in self.commands.values():
                self.by_run.setdefault(command.run_id, []).append(command)
        return [command for run in dict.fromkeys(runs) for command in self.by_run.get(run, ())]

    def _withdraw(self, run: str, step: ReceiptStep) -> None:
        """The run took in a withdrawal: the note goes, unless the model has read it."""
        asking = self.commands.get(step.command)
        note = self.commands.get(str(asking.args.get("command", "")) if asking else "")
        self._advance(step.command, run, "delivered", step.ts)
        if note is None or note.run_id != run:
            self._advance(step.command, run, "refused", step.ts, code="unknown_command")
        elif self._settled(note.pk, run):
            self._advance(step.command, run, "refused", step.ts, code="too_late")
        else:
            self._advance(note.pk, run, "withdrawn", step.ts, code="withdrawn")
            self._advance(step.command, run, "done", step.ts)

    def _settled(self, command: str, run: str) -> bool:
        receipt = self.rows.get((command, run))
        return receipt is not None and receipt.state in receipts.SETTLED

    def _advance(
        self, command: str, run: str, state: str, ts: datetime, *, code: str | None = None, turn: int | None = None
    ) -> None:
        receipt = self.rows.setdefault((command, run), receipts.fresh(command, run))
        receipts.forward(receipt, state, ts, code=code, turn=turn)
        self.changed[command, run] = receipt

    def write(self) -> None:
        """One statement for all of them: a row of Django's own would cost each a look and a write."""
        rows = [self.changed[key] for key in sorted(self.changed)]
        names = ["command_id", "run_id", *_COLUMNS]
        fields = [field for name in names if isinstance(field := Receipt._meta.get_field(name), Field)]
        changes = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)
        for start in range(0, len(rows), _AT_ONCE // len(names)):
            part = rows[start : start + _AT_ONCE // len(names)]
            marks = ", ".join([f"({', '.join(['%s'] * len(names))})"] * len(part))
            values = [f.get_db_prep_save(getattr(row, f.attname), connection) for row in part for f in fields]
            with connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO runs_receipt ({', '.join(names)}) VALUES {marks} "
                    f"ON CONFLICT (command_id, run_id) DO UPDATE SET {changes}",
                    values,
                )


def _reaches(command: Command, run: str, path: Sequence[str]) -> bool:
    return command.run_id == run or (command.scope == Scope.SUBTREE.value and command.run_id in path)


def review(commands: Iterable[Command], known: Mapping[str, Mapping[str, Receipt]]) -> None:
    """Set the state of these locked commands from all their receipts; close those with nothing left to wait for."""
    commands = list(commands)
    active = _active(commands)
    # Few states and many commands: one statement for each state, not a case for each command.
    changed: dict[tuple[str, bool], list[str]] = {}
    for command in commands:
        state, is_open = receipts.outcome(command, known.get(command.pk, {}), active[command.pk])
        if (state, is_open) != (command.state, command.open):
            command.state, command.open = state, is_open
            changed.setdefault((state, is_open), []).append(command.pk)
    for (state, is_open), named in changed.items():
        for start in range(0, len(named), _AT_ONCE):
            part = named[start : start + _AT_ONCE]
            Command.objects.filter(pk__in=part).update(state=state, open=is_open)


def _active(commands: Sequence[Command]) -> dict[str, list[str]]:
    """The runs that each command reaches and that have not ended."""
    found: dict[str, list[str]] = {command.pk: [] for command in commands}
    wide = {command.run_id for command in commands if command.scope == Scope.SUBTREE.value}
    narrow = {command.run_id for command in commands} - wide
    roots = set(Run.objects.filter(pk__in=wide).values_list("root", flat=True)) if wide else set()
    alive = Run.objects.filter(Q(pk__in=narrow) | Q(root__in=roots)).exclude(status__in=receipts.FINAL_WORDS)
    rows = list(alive.order_by("id").values_list("id", "path")) if commands else []
    below: dict[str, list[str]] = {}
    for run, path in rows:
        for ancestor in path.split("/"):
            below.setdefault(ancestor, []).append(run)
    for command in commands:
        runs = below.get(command.run_id, [])
        wide_one = command.scope == Scope.SUBTREE.value
        found[command.pk] = [run for run in runs if wide_one or run == command.run_id]
    return found
