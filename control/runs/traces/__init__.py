"""Traces: what the logs tell, as OpenTelemetry spans with the names of the GenAI conventions."""
