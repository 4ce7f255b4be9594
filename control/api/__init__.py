"""The same verbs for machines."""
