"""App of agents, policies, memory and credentials by reference."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _first_start(**_: Any) -> None:
    from control.fleet import agents, policies

    policies.ensure_shipped()
    agents.ensure_default()


class FleetConfig(AppConfig):
    name = "control.fleet"
    label = "fleet"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from control.fleet import credentials

        post_migrate.connect(_first_start, sender=self, dispatch_uid="fleet_first_start")
        credentials.learn()
