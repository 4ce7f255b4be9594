"""The desk's rows: incidents with what was done about them, the routes that alerts take, and what was sent on these.

An incident is opened by a rule and found again by its key; a delivery is one notice about one incident on one route.
"""

from django.db import models

from agents.ids import new_id
from control.incidents.models_backtest import Backtest as Backtest  # Django looks for models here
from control.incidents.models_backtest import BacktestPiece as BacktestPiece
from control.incidents.models_backtest import BacktestResult as BacktestResult
from control.incidents.models_postmortem import ActionItem as ActionItem
from control.incidents.models_postmortem import Postmortem as Postmortem
from control.incidents.models_postmortem import PostmortemRevision as PostmortemRevision
from control.incidents.models_postmortem import ShareLink as ShareLink


class Severity(models.TextChoices):
    """The words of PagerDuty, gravest first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


class State(models.TextChoices):
    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class Incident(models.Model):
    """Something that a person should know. `key` is `run:<id>:<rule>` or `<thing>:<name>:<rule>`; of one key at most
    one is unresolved.

    `facts` is what the rule found, ready to be shown: `[[name, value], …]`. `evidence` holds `seq`s of the run's log.
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    key = models.CharField(max_length=200, db_index=True)
    rule = models.CharField(max_length=40, db_index=True)
    severity = models.CharField(max_length=10, choices=Severity.choices)
    state = models.CharField(max_length=14, choices=State.choices, default=State.OPEN)
    title = models.CharField(max_length=300)
    summary = models.TextField(default="")
    facts = models.JSONField(default=list)
    evidence = models.JSONField(default=list)
    run_id = models.CharField(max_length=36, null=True, blank=True, db_index=True)
    root = models.CharField(max_length=36, null=True, blank=True)
    agent = models.CharField(max_length=100, blank=True, default="")
    project = models.CharField(max_length=100, blank=True, default="")
    labels = models.JSONField(default=dict)
    # When it happened (the log's time), and when the desk knew: their difference is the time to detect.
    happened_at = models.DateTimeField()
    opened_at = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField()
    # How often the rule spoke, and how often it came back after it had been resolved.
    times = models.PositiveIntegerField(default=1)
    returns = models.PositiveIntegerField(default=0)
    # Which notice about it is the latest: each reminder and each return begins a round.
    round = models.PositiveIntegerField(default=0)
    # The rule's condition is over; what is closed by the condition alone resolves a little later.
    cleared_at = models.DateTimeField(null=True, blank=True)
    flapping = models.BooleanField(default=False)
    assignee = models.CharField(max_length=150, blank=True, default="")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_by = models.CharField(max_length=150, blank=True, default="")
    resolution = models.TextField(blank=True, default="")
    snoozed_until = models.DateTimeField(null=True, blank=True)
    # When the desk looks again whether somebody must be told once more; None: never.
    remind_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=~models.Q(state="resolved"), name="incident_one_unresolved"
            ),
        ]
        indexes = [
            models.Index(fields=["state", "-opened_at"], name="incident_state"),
            models.Index(fields=["remind_at"], name="incident_remind", condition=~models.Q(state="resolved")),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.state}"


class IncidentNote(models.Model):
    """One line of an incident's own history: what the desk did by itself (`by` is ""), and what people did."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="notes")
    at = models.DateTimeField()
    # opened, again, returned, cleared, flapping, steady, reminded, escalated; acknowledged, released, assigned,
    # comment, snoozed, woken, resolved, reopened.
    kind = models.CharField(max_length=14)
    by = models.CharField(max_length=150, blank=True, default="")
    text = models.TextField(blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["incident", "at"], name="incident_note_order")]


class AlertRoute(models.Model):
    """One way to tell somebody. `options` are the transport's open settings; `sealed` holds its secret ones, encrypted
    with a key made from SECRET_KEY, and is opened only to send."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    name = models.CharField(max_length=100, unique=True)
    transport = models.CharField(max_length=14)
    enabled = models.BooleanField(default=True)
    # Made by the guided example for its own runs, and removed with it.
    example = models.BooleanField(default=False)
    options = models.JSONField(default=dict)
    sealed = models.JSONField(default=dict)
    # Which incidents take it: at least this grave, of these rules, agents and projects (empty: all).
    least = models.CharField(max_length=10, choices=Severity.choices, default=Severity.WARNING)
    rules = models.JSONField(default=list)
    agents = models.JSONField(default=list)
    projects = models.JSONField(default=list)
    # 0: told at once. Else a second channel: told when nobody has acknowledged for so many minutes.
    after_minutes = models.PositiveIntegerField(default=0)
    repeat_hours = models.PositiveIntegerField(default=4)
    group_seconds = models.PositiveIntegerField(default=30)
    send_resolved = models.BooleanField(default=True)
    # Hours of the day in `zone` in which only critical ones come through; what else there is waits for their end.
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)
    zone = models.CharField(max_length=60, default="UTC")
    # A service that asks for patience is left alone until then.
    rest_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150)


class Delivery(models.Model):
    """One notice about one incident on one route. Those that went out together share `message`, its code and its tries.

    `number` tells the first notice from reminders: route, incident, action and number are there once, so nothing is
    sent twice. A test has no incident. `tries` is `[{at, code, error, seconds}, …]`.
    """

    class Action(models.TextChoices):
        TRIGGER = "trigger"
        ACKNOWLEDGE = "acknowledge"
        RESOLVE = "resolve"
        TEST = "test"

    class State(models.TextChoices):
        DUE = "due"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"
        DROPPED = "dropped"

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    message = models.CharField(max_length=36, null=True, blank=True, db_index=True)
    route = models.ForeignKey(AlertRoute, on_delete=models.PROTECT, related_name="deliveries")
    incident = models.ForeignKey(Incident, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries")
    action = models.CharField(max_length=12, choices=Action.choices)
    number = models.PositiveIntegerField(default=0)
    key = models.CharField(max_length=255)
    state = models.CharField(max_length=10, choices=State.choices, default=State.DUE)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    # Who is sending it, and until when nobody else may try.
    sender = models.CharField(max_length=36, blank=True, default="")
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.JSONField(default=list)
    code = models.PositiveSmallIntegerField(null=True, blank=True)
    why = models.CharField(max_length=300, blank=True, default="")
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["route", "incident", "action", "number"], name="delivery_once"),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="delivery_due", condition=models.Q(state__in=["due", "sending"])),
            models.Index(fields=["route", "-created_at"], name="delivery_route"),
        ]


class Gauge(models.Model):
    """What the desk remembers of the fleet as a whole between two looks: spend per minute, errors of a provider.

    `points` is `[[minute, value, of], …]`, oldest first, minutes since 1970; `seen` is the last running total.
    """

    name = models.CharField(primary_key=True, max_length=120)
    points = models.JSONField(default=list)
    seen = models.JSONField(default=dict)
    changed_at = models.DateTimeField()
