"""What runs are made from: agents and policies, a row per version, of which a run freezes the current ones; and how the
keys fare that they use."""

from django.db import models

from control.fleet.models_schedules import Schedule as Schedule  # Django looks for models here
from control.fleet.models_schedules import ScheduledRun as ScheduledRun

# What is kept of a provider's sentence on why a key is not well.
SAID = 240


class Agent(models.Model):
    """One version of one agent. `tools` lists names, `limits` maps fuse names to numbers; "" = the default model.
    `source` and `reason` as with policies."""

    name = models.CharField(max_length=100, db_index=True)
    version = models.PositiveIntegerField(default=1)
    current = models.BooleanField(default=True)
    prompt = models.TextField()
    tools = models.JSONField(default=list)
    model = models.CharField(max_length=200, blank=True, default="")
    base_url = models.CharField(max_length=500, blank=True, default="")
    credential = models.CharField(max_length=100, blank=True, default="")
    # Models to go on with, in order: `{model, base_url?, credential?, provider?}`.
    fallbacks = models.JSONField(default=list)
    policy = models.CharField(max_length=100, default="default")
    limits = models.JSONField(default=dict)
    delegates_to = models.JSONField(default=list)
    # Servers whose tools it uses too, each as `agents.tools.mcp.config` reads it.
    mcp_servers = models.JSONField(default=list)
    source = models.TextField(blank=True, default="")
    reason = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="agent_version_once"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(current=True), name="agent_one_current"),
        ]


class Policy(models.Model):
    """One version of one policy: fuses, ladder and identity rules as data. `source` is its TOML as a person typed it,
    "" where it came as data; `reason` says why it was saved."""

    name = models.CharField(max_length=100, db_index=True)
    version = models.PositiveIntegerField(default=1)
    current = models.BooleanField(default=True)
    body = models.JSONField(default=dict)
    source = models.TextField(blank=True, default="")
    reason = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="policy_version_once"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(current=True), name="policy_one_current"),
        ]


class Memory(models.Model):
    """One version of one note that an agent keeps from run to run. `note` names it through its versions.

    `author` made the note and `changed_by` this version: a person's name, or `run:<id>`. A deleted note has no rows.
    """

    note = models.CharField(max_length=36, db_index=True)
    version = models.PositiveIntegerField(default=1)
    current = models.BooleanField(default=True)
    agent = models.CharField(max_length=100, db_index=True)
    text = models.TextField()
    disabled = models.BooleanField(default=False)
    author = models.CharField(max_length=160)
    created_at = models.DateTimeField()
    changed_by = models.CharField(max_length=160)
    changed_at = models.DateTimeField()
    # The call that wrote it: the same call writes it once.
    call = models.CharField(max_length=36, null=True)

    class Meta:
        verbose_name_plural = "memory"
        constraints = [
            models.UniqueConstraint(fields=["note", "version"], name="memory_version_once"),
            models.UniqueConstraint(fields=["note"], condition=models.Q(current=True), name="memory_one_current"),
            models.UniqueConstraint(fields=["call"], condition=models.Q(version=1), name="memory_call_once"),
        ]


class CredentialState(models.Model):
    """How one key fares, shared by all workers; the key itself is never here. Money is in billionths of a dollar, so
    that sums are exact on every database. `version` counts the changes, for conditional updates."""

    label = models.CharField(max_length=100, primary_key=True)
    version = models.PositiveBigIntegerField(default=0)
    health = models.CharField(max_length=10, default="ok")
    reason = models.CharField(max_length=40, null=True)
    cooldown_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    said = models.CharField(max_length=SAID, default="", blank=True)
    spent_nano = models.BigIntegerField(default=0)
    # What was spent since `period_start`, for a credential with a limit per period.
    period_nano = models.BigIntegerField(default=0)
    period_start = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(null=True)
