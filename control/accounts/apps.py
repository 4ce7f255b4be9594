"""App of sign-in, roles, tokens, audit."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "control.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"
