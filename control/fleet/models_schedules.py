"""Schedules: which agent starts on which task when, and what became of each time."""

from django.db import models

from agents.ids import new_id


class Schedule(models.Model):
    """`cron` in five fields, read in `zone`. `limits` maps fuse names to numbers, beside those of agent and policy.

    `missed`: what becomes of times at which no desk was there. `overlap`: what if the run before still goes on.
    """

    class Missed(models.TextChoices):
        ONCE = "once"
        SKIP = "skip"
        ALL = "all"

    class Overlap(models.TextChoices):
        SKIP = "skip"
        ALLOW = "allow"
        INTERRUPT = "interrupt"

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    name = models.CharField(max_length=100, unique=True)
    agent = models.CharField(max_length=100)
    task = models.TextField()
    cron = models.CharField(max_length=100)
    zone = models.CharField(max_length=60, default="UTC")
    policy = models.CharField(max_length=100, blank=True, default="")
    limits = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    project = models.CharField(max_length=100, blank=True, default="")
    workspace = models.CharField(max_length=1000, blank=True, default="")
    dry_run = models.BooleanField(default=False)
    missed = models.CharField(max_length=6, choices=Missed.choices, default=Missed.ONCE)
    overlap = models.CharField(max_length=10, choices=Overlap.choices, default=Overlap.SKIP)
    # It stops itself when so many of its last runs in a row have tripped; 0: never.
    stop_after_trips = models.PositiveSmallIntegerField(default=3)
    enabled = models.BooleanField(default=True)
    next_at = models.DateTimeField(null=True, blank=True, db_index=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.CharField(max_length=150, blank=True, default="")
    stopped_why = models.CharField(max_length=300, blank=True, default="")
    # Trips before this do not count any more: somebody has looked and let it go on.
    trips_since = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150)


class ScheduledRun(models.Model):
    """One time of a schedule: the run that it started, or why it started none. Each time is there once."""

    class Outcome(models.TextChoices):
        STARTED = "started"
        MISSED = "missed"
        OVERLAP = "overlap"
        REFUSED = "refused"

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="times")
    due_at = models.DateTimeField()
    at = models.DateTimeField()
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    run_id = models.CharField(max_length=36, null=True, blank=True)
    why = models.CharField(max_length=300, blank=True, default="")
    # Whoever started it out of turn; "" for the clock.
    by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["schedule", "due_at"], name="scheduled_once")]
        indexes = [models.Index(fields=["schedule", "-due_at"], name="scheduled_last")]
