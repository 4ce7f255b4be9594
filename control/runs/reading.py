"""The rows of readers: how far each has read every log, and the running totals that one of them keeps."""

from django.db import models


class Cursor(models.Model):
    """How far one reader has read one run's log. `done` once it has seen the run's end."""

    pk = models.CompositePrimaryKey("reader", "run_id")
    reader = models.CharField(max_length=20)
    run_id = models.CharField(max_length=36, db_index=True)
    seq = models.PositiveIntegerField(default=0)
    done = models.BooleanField(default=False)

    class Meta:
        app_label = "runs"
        indexes = [models.Index(fields=["reader"], name="cursor_open", condition=models.Q(done=False))]


class Counter(models.Model):
    """One running total of `/metrics`. `labels` is JSON with sorted keys; `part` is empty for a plain counter, else
    `sum` or the upper bound of a histogram's bucket, which holds what fell between the bound before it and its own."""

    pk = models.CompositePrimaryKey("family", "labels", "part")
    family = models.CharField(max_length=60)
    labels = models.CharField(max_length=600)
    part = models.CharField(max_length=12, default="")
    value = models.FloatField(default=0)

    class Meta:
        app_label = "runs"
