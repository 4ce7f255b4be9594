"""What people add to the postmortem of a run: texts with their history, action items, and links for those outside.

The report itself is folded from the log each time it is shown, and stored nowhere.
"""

from django.db import models

from agents.ids import new_id


class Postmortem(models.Model):
    """One per run, made by the first edit. `texts` is `{section: {text, number}}` as it stands, `number` the revision;
    `struck` the codes of proposed factors that are not accepted, `added` those that people named, as texts."""

    class State(models.TextChoices):
        DRAFT = "draft"
        REVIEW = "review"
        CLOSED = "closed"

    run_id = models.CharField(primary_key=True, max_length=36)
    state = models.CharField(max_length=8, choices=State.choices, default=State.DRAFT)
    severity = models.CharField(max_length=10, blank=True, default="")
    owner = models.CharField(max_length=150, blank=True, default="")
    due = models.DateField(null=True, blank=True)
    texts = models.JSONField(default=dict)
    struck = models.JSONField(default=list)
    added = models.JSONField(default=list)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150)
    closed_at = models.DateTimeField(null=True, blank=True)


class PostmortemRevision(models.Model):
    """One change by one person: of a section's text, or of `state`, `head` (owner, severity, due) or `factors`, told in
    `text`. Only ever added."""

    postmortem = models.ForeignKey(Postmortem, on_delete=models.CASCADE, related_name="revisions")
    section = models.CharField(max_length=20)
    number = models.PositiveIntegerField()
    text = models.TextField()
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["postmortem", "section", "number"], name="postmortem_revision_once"),
        ]


class ActionItem(models.Model):
    """What will be done so that it does not happen again, hurts less, or is seen sooner."""

    class Kind(models.TextChoices):
        PREVENT = "prevent"
        MITIGATE = "mitigate"
        DETECT = "detect"

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    postmortem = models.ForeignKey(Postmortem, on_delete=models.CASCADE, related_name="actions")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    text = models.CharField(max_length=500)
    owner = models.CharField(max_length=150, blank=True, default="")
    link = models.CharField(max_length=500, blank=True, default="")
    due = models.DateField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)


class ShareLink(models.Model):
    """A link by which somebody without an account may read one postmortem for a while. Only its digest is kept."""

    id = models.CharField(primary_key=True, max_length=36, default=new_id)
    run_id = models.CharField(max_length=36, db_index=True)
    digest = models.CharField(max_length=64, unique=True)
    note = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=150)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True, default="")
    opened = models.PositiveIntegerField(default=0)
    last_opened_at = models.DateTimeField(null=True, blank=True)
