"""App of the same verbs for machines."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "control.api"
    label = "api"
    default_auto_field = "django.db.models.BigAutoField"
