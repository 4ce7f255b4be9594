"""The window on the runs."""
