"""The postmortem of a run: a report folded from its log, what people add to it, and the forms in which it leaves."""
