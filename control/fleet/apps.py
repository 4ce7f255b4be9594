"""App of agents, policies, memory and credentials by reference."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "control.fleet"
    label = "fleet"
    default_auto_field = "django.db.models.BigAutoField"
