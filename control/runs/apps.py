"""App of the record: log, projections, leases, inbox, host."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class RunsConfig(AppConfig):
    name = "control.runs"
    label = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from control.runs import sessions

        connection_created.connect(sessions.on_connected, dispatch_uid="bounded sessions")
