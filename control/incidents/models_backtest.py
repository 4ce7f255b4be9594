"""Backtests: the question what some policies would have done to runs that are over, its pieces, and what came out."""

from django.db import models

from agents.ids import new_id


class Backtest(models.Model):
    """One question, durable before the work begins. `policies` is `[{name, version, body}, …]`: up to four, frozen.

    `filter` says which runs were meant; which these were, its pieces hold. `figures` stands once it is over.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"
        FAILED = "failed"

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    filter = models.JSONField(default=dict)
    policies = models.JSONField(default=list)
    by = models.CharField(max_length=150)
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    created_at = models.DateTimeField(db_index=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    cancelled_by = models.CharField(max_length=150, blank=True, default="")
    # How many runs are judged, and how many more the filter had meant.
    total = models.PositiveIntegerField(default=0)
    left_out = models.PositiveIntegerField(default=0)
    figures = models.JSONField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["created_at"], name="backtest_open", condition=models.Q(state="running")),
        ]


class BacktestPiece(models.Model):
    """Some runs of a backtest: what one task judges. Claimed by conditional update; `until` ends a dead claim."""

    class State(models.TextChoices):
        DUE = "due"
        TAKEN = "taken"
        DONE = "done"
        FAILED = "failed"

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    backtest = models.ForeignKey(Backtest, on_delete=models.CASCADE, related_name="pieces")
    number = models.PositiveIntegerField()
    runs = models.JSONField(default=list)
    state = models.CharField(max_length=6, choices=State.choices, default=State.DUE)
    owner = models.CharField(max_length=36, blank=True, default="")
    until = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    # When it was last handed to the broker: few at a time, and again when nobody took it.
    published_at = models.DateTimeField(null=True, blank=True)
    # One object per policy, in its order; see `backtest.figures`.
    figures = models.JSONField(null=True, blank=True)
    why = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["backtest", "number"], name="backtest_piece_once")]


class BacktestResult(models.Model):
    """What one policy (`place`: which of them) would have said to one run. There is no row where it was silent."""

    backtest = models.ForeignKey(Backtest, on_delete=models.CASCADE, related_name="results")
    place = models.PositiveSmallIntegerField()
    run_id = models.CharField(max_length=36)
    agent = models.CharField(max_length=100)
    # How the run had ended, and whether it had come to its end by itself.
    status = models.CharField(max_length=12)
    healthy = models.BooleanField()
    # observed, blocked or stopped: the worst of it.
    outcome = models.CharField(max_length=8)
    rule = models.CharField(max_length=60)
    observed = models.PositiveIntegerField(default=0)
    blocked = models.PositiveIntegerField(default=0)
    stubbed = models.PositiveIntegerField(default=0)
    # Steps (tool calls) count from 1.
    first_block_step = models.PositiveIntegerField(null=True)
    stop_step = models.PositiveIntegerField(null=True)
    stop_turn = models.PositiveIntegerField(null=True)
    steps = models.PositiveIntegerField(default=0)
    why = models.CharField(max_length=300, blank=True, default="")
    # What came after the stop.
    saved_calls = models.PositiveIntegerField(default=0)
    saved_model_calls = models.PositiveIntegerField(default=0)
    saved_tokens = models.BigIntegerField(default=0)
    saved_usd = models.DecimalField(max_digits=18, decimal_places=9, null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["backtest", "place", "run_id"], name="backtest_result_once")]
        indexes = [
            models.Index(fields=["backtest", "place", "outcome", "healthy"], name="backtest_result_list"),
        ]
