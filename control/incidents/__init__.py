"""The incident desk."""
