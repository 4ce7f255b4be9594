"""What runs are made from: agents and policies, each a row per version; a run freezes the versions it starts with."""

from django.db import models


class Agent(models.Model):
    """One version of one agent. `tools` lists names, `limits` maps fuse names to numbers; "" = the default model."""

    name = models.CharField(max_length=100, db_index=True)
    version = models.PositiveIntegerField(default=1)
    current = models.BooleanField(default=True)
    prompt = models.TextField()
    tools = models.JSONField(default=list)
    model = models.CharField(max_length=200, blank=True, default="")
    base_url = models.CharField(max_length=500, blank=True, default="")
    credential = models.CharField(max_length=100, blank=True, default="")
    policy = models.CharField(max_length=100, default="default")
    limits = models.JSONField(default=dict)
    delegates_to = models.JSONField(default=list)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="agent_version_once"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(current=True), name="agent_one_current"),
        ]


class Policy(models.Model):
    """One version of one policy: fuses, ladder and identity rules as data."""

    name = models.CharField(max_length=100, db_index=True)
    version = models.PositiveIntegerField(default=1)
    current = models.BooleanField(default=True)
    body = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="policy_version_once"),
            models.UniqueConstraint(fields=["name"], condition=models.Q(current=True), name="policy_one_current"),
        ]
