"""The record: runs with their logs, calls, verdicts, commands, artifacts and the workers that hold them.

`Event` is the truth; `Run` columns below the line, `Call`, `Verdict` and `Receipt` are projections that
`projections.rebuild` can make again from it.
"""

from django.db import models

from agents.commands import CommandKind, CommandState, Scope
from agents.ids import new_id
from agents.spec import Status
from control.runs.reading import Counter as Counter  # Django looks for models here
from control.runs.reading import Cursor as Cursor


def _choices(words: type[Status] | type[CommandKind] | type[CommandState] | type[Scope]) -> list[tuple[str, str]]:
    return [(word.value, word.value) for word in words]


class Run(models.Model):
    """One execution of one agent on one task. Its lease holder's writer writes it, or whoever ends or requeues it."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    root = models.CharField(max_length=36)
    parent = models.CharField(max_length=36, null=True, blank=True)
    # Ancestors from the root down to the run itself, joined by "/": a subtree is a prefix.
    path = models.CharField(max_length=512)
    parent_call = models.CharField(max_length=36, null=True, blank=True)
    detached = models.BooleanField(default=False)
    replay_of = models.CharField(max_length=36, null=True, blank=True)
    forked_from = models.CharField(max_length=36, null=True, blank=True)
    source = models.CharField(max_length=16, default="native")
    external_id = models.CharField(max_length=200, null=True, blank=True)
    project = models.CharField(max_length=100, default="default")
    owner = models.CharField(max_length=150)
    agent = models.CharField(max_length=100)
    task = models.TextField()
    labels = models.JSONField(default=dict)
    priority = models.SmallIntegerField(default=0)
    # Everything frozen at the start, as `starts.freeze` wrote it: prompt, tools, model, limits, policy, workspace.
    spec = models.JSONField(default=dict)
    policy = models.CharField(max_length=100, default="default")
    created_at = models.DateTimeField()

    # Who may write: lease and epoch. `epoch` counts attempts at holding it; database time decides.
    epoch = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    worker = models.CharField(max_length=36, null=True, blank=True)
    host = models.CharField(max_length=255, null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    # The interrupt that a spawn must respect: set by `inbox.issue` in the same transaction as the Command row.
    stop_command = models.CharField(max_length=36, null=True, blank=True)
    children = models.PositiveIntegerField(default=0)
    published_at = models.DateTimeField(null=True, blank=True)

    # --- projections of the log -------------------------------------------------------------------------------
    last_seq = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=12, choices=_choices(Status), default=Status.QUEUED.value)
    exit_reason = models.CharField(max_length=100, null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    turns = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=18, decimal_places=9, null=True, blank=True)
    cost_unknown = models.BooleanField(default=False)
    last_activity_at = models.DateTimeField(null=True, blank=True)
    activity = models.CharField(max_length=300, null=True, blank=True)
    waiting_for = models.CharField(max_length=12, null=True, blank=True)
    waiting_call = models.CharField(max_length=36, null=True, blank=True)
    rung = models.CharField(max_length=10, null=True, blank=True)
    final = models.TextField(null=True, blank=True)
    # From the interrupt's request to the end of the run, both in database time.
    stop_seconds = models.FloatField(null=True, blank=True)
    stopped = models.JSONField(null=True, blank=True)

    class Meta:
        # Each change of an indexed column is paid for in every index, so there are few, and none on what changes while
        # a run works: on PostgreSQL such a change stays within the row's page.
        indexes = [
            # Families together, the newest first; and all runs of one tree.
            models.Index(fields=["-root", "path"], name="run_family"),
            models.Index(fields=["parent"], name="run_parent"),
            models.Index(fields=["worker"], name="run_worker"),
            models.Index(fields=["project", "-created_at"], name="run_project"),
            models.Index(fields=["status", "-created_at"]),
            models.Index(fields=["agent", "-created_at"]),
            models.Index(fields=["-created_at", "-id"]),
            models.Index(fields=["owner"], name="run_owner"),
            # What ended of late: written once, when a run ends.
            models.Index(
                fields=["finished_at", "status"], name="run_ended", condition=models.Q(finished_at__isnull=False)
            ),
            # The line of each agent, in the order in which its runs are taken.
            models.Index(
                fields=["agent", "-priority", "created_at"], name="run_line", condition=models.Q(status="queued")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.id} {self.status}"


class Event(models.Model):
    """One line of one run's log. `body` is the whole envelope as sent. Rows are only appended; no foreign key."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run_id = models.CharField(max_length=36)
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=40)
    turn = models.PositiveIntegerField(null=True)
    call = models.CharField(max_length=36, null=True)
    at = models.DateTimeField()
    ts = models.DateTimeField()
    body = models.TextField()


class Call(models.Model):
    """One piece of work with a start and an end, folded from `call.*` events."""

    # One index serves both a run's calls and one call of a run: every index is paid for in each append.
    pk = models.CompositePrimaryKey("run_id", "id")
    run_id = models.CharField(max_length=36)
    id = models.CharField(max_length=36)
    turn = models.PositiveIntegerField(null=True)
    operation = models.CharField(max_length=20)
    name = models.CharField(max_length=200)
    # What it does in a few words, as the fleet shows it: `run_command pytest -q`.
    label = models.CharField(max_length=300, default="")
    status = models.CharField(max_length=16, null=True)
    started_seq = models.PositiveIntegerField(null=True)
    completed_seq = models.PositiveIntegerField(null=True)
    late_status = models.CharField(max_length=16, null=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    started_at = models.DateTimeField(null=True)
    completed_at = models.DateTimeField(null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    cost_usd = models.DecimalField(max_digits=18, decimal_places=9, null=True)
    cost_source = models.CharField(max_length=12, null=True)


class Verdict(models.Model):
    """One judgement, folded from `verdict.issued`."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    run_id = models.CharField(max_length=36)
    seq = models.PositiveIntegerField()
    call = models.CharField(max_length=36, null=True)
    detector = models.CharField(max_length=60)
    rung = models.CharField(max_length=10)
    rule = models.CharField(max_length=60)
    mode = models.CharField(max_length=8, null=True)
    fingerprint = models.CharField(max_length=80)
    step = models.PositiveIntegerField()
    count = models.PositiveIntegerField()
    wasted_tokens = models.BigIntegerField(default=0)
    wasted_usd = models.DecimalField(max_digits=18, decimal_places=9, null=True)
    shadow = models.BooleanField(default=False)


class Command(models.Model):
    """What an operator wants: durable, idempotent. `open` until every run it reaches has done or refused it."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    run_id = models.CharField(max_length=36, db_index=True)
    scope = models.CharField(max_length=8, choices=_choices(Scope), default=Scope.RUN.value)
    kind = models.CharField(max_length=10, choices=_choices(CommandKind))
    by = models.CharField(max_length=150)
    reason = models.TextField(null=True, blank=True)
    args = models.JSONField(default=dict)
    issued_at = models.DateTimeField()
    open = models.BooleanField(default=True)
    state = models.CharField(max_length=10, choices=_choices(CommandState), default=CommandState.REQUESTED.value)
    bulk = models.CharField(max_length=36, null=True, blank=True, db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["run_id"], name="command_open", condition=models.Q(open=True)),
        ]


class Bulk(models.Model):
    """One wish about many runs: every run that `filter` means gets a command of its own. Durable before it begins.

    The work goes in pieces, by run id up to `cursor`, and any process may go on where another one died. `asked_at`: all
    have their command; `finished_at`: all commands are over, and `figures` is how it came out.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    kind = models.CharField(max_length=10, choices=_choices(CommandKind))
    filter = models.JSONField(default=dict)
    args = models.JSONField(default=dict)
    by = models.CharField(max_length=150)
    reason = models.TextField(null=True, blank=True)
    block = models.CharField(max_length=36, null=True, blank=True)
    issued_at = models.DateTimeField(db_index=True)
    # How many there were to ask when it was asked for; `asked` counts the commands written so far.
    eligible = models.PositiveIntegerField(default=0)
    asked = models.PositiveIntegerField(default=0)
    cursor = models.CharField(max_length=36, default="", blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.CharField(max_length=150, null=True, blank=True)
    cancel_reason = models.TextField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    figures = models.JSONField(null=True, blank=True)


class IdempotencyKey(models.Model):
    """The answer once given to a POST with this key, so that a repeat gets the same answer and does nothing."""

    actor = models.CharField(max_length=150)
    key = models.CharField(max_length=200)
    route = models.CharField(max_length=200)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["actor", "key", "route"], name="idempotency_once")]


class Receipt(models.Model):
    """How far one command has come in one run: requested, delivered, stopping, done or refused, each with its time."""

    pk = models.CompositePrimaryKey("command_id", "run_id")
    command_id = models.CharField(max_length=36)
    run_id = models.CharField(max_length=36)
    state = models.CharField(max_length=10, choices=_choices(CommandState))
    code = models.CharField(max_length=60, null=True)
    turn = models.PositiveIntegerField(null=True)
    delivered_at = models.DateTimeField(null=True)
    stopping_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)


class Artifact(models.Model):
    """Content by its hash: prompts, tool schemas, large results, edited files."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    size = models.PositiveIntegerField()
    content = models.BinaryField()
    created_at = models.DateTimeField()


class Worker(models.Model):
    """One process that drives runs (or the desk). `mark` is in the environment of every tool process it starts."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    kind = models.CharField(max_length=8, default="worker")
    host = models.CharField(max_length=255)
    boot = models.CharField(max_length=64, default="")
    pid = models.PositiveIntegerField()
    pid_started = models.FloatField(default=0)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField(db_index=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    runs = models.PositiveIntegerField(default=0)
    capacity = models.PositiveIntegerField(default=200)
    draining = models.BooleanField(default=False)
    # When somebody asked it to hand its runs over and end; it looks for this every second.
    drain_asked_at = models.DateTimeField(null=True, blank=True)
    version = models.CharField(max_length=60, blank=True, default="")
    # How busy its machine was at the last heartbeat: the load of a minute per core; None where the system tells none.
    load = models.FloatField(null=True)


class Chore(models.Model):
    """Work that one desk process at a time may do; claimed by conditional update."""

    name = models.CharField(primary_key=True, max_length=60)
    owner = models.CharField(max_length=36, null=True, blank=True)
    until = models.DateTimeField(null=True, blank=True)
    last_done_at = models.DateTimeField(null=True, blank=True)


class WorkspaceLease(models.Model):
    """An exclusive hold on a directory or a branch: `key` is `dir:<real path>` or `branch:<repo>:<name>`."""

    key = models.CharField(primary_key=True, max_length=1200)
    run_id = models.CharField(max_length=36, db_index=True)
    taken_at = models.DateTimeField()


class Block(models.Model):
    """New starts that match `filter` are refused until it is lifted."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    filter = models.JSONField(default=dict)
    reason = models.TextField()
    by = models.CharField(max_length=150)
    created_at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=150, null=True, blank=True)
    lift_reason = models.TextField(null=True, blank=True)


class Account(models.Model):
    """What one limit of money, tokens and model calls has come to: spent for good, held by calls that are under way,
    spare for the last word of the run that it belongs to. Keys are those of `agents.policy.accounts`; money is in
    billionths of a dollar."""

    key = models.CharField(primary_key=True, max_length=160)
    usd_limit = models.BigIntegerField(null=True)
    tokens_limit = models.BigIntegerField(null=True)
    calls_limit = models.BigIntegerField(null=True)
    usd_spent = models.BigIntegerField(default=0)
    tokens_spent = models.BigIntegerField(default=0)
    calls_spent = models.BigIntegerField(default=0)
    usd_held = models.BigIntegerField(default=0)
    tokens_held = models.BigIntegerField(default=0)
    calls_held = models.BigIntegerField(default=0)
    usd_spare = models.BigIntegerField(default=0)
    tokens_spare = models.BigIntegerField(default=0)
    calls_spare = models.BigIntegerField(default=0)


class Reservation(models.Model):
    """What one run holds on its accounts for a model call, or for a few ahead of them, until it is settled: once.

    `call` and `attempt` name the call where it is held for one; `at` is the worker's time, as that of the run's events.
    """

    id = models.CharField(primary_key=True, max_length=36)
    run_id = models.CharField(max_length=36, db_index=True)
    epoch = models.PositiveIntegerField()
    worker = models.CharField(max_length=36)
    call = models.CharField(max_length=36, null=True)
    attempt = models.PositiveIntegerField(null=True)
    accounts = models.JSONField(default=list)
    usd = models.BigIntegerField()
    tokens = models.BigIntegerField()
    calls = models.BigIntegerField()
    at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    # Who settled it: `worker`, or from what the sweeper took it: `log` or `held`.
    settled_by = models.CharField(max_length=8, null=True)
    usd_spent = models.BigIntegerField(null=True)
    tokens_spent = models.BigIntegerField(null=True)
    calls_spent = models.BigIntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["run_id"], name="reservation_open", condition=models.Q(settled_at=None)),
        ]
