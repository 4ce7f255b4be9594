"""The Django project under the console."""
