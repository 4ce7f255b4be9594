"""App of the window on the runs."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "control.dashboard"
    label = "dashboard"
    default_auto_field = "django.db.models.BigAutoField"
