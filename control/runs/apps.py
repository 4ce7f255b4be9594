"""App of the record: log, projections, leases, inbox, host."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "control.runs"
    label = "runs"
    default_auto_field = "django.db.models.BigAutoField"
