"""App of the incident desk."""

from django.apps import AppConfig


class IncidentsConfig(AppConfig):
    name = "control.incidents"
    label = "incidents"
    default_auto_field = "django.db.models.BigAutoField"
