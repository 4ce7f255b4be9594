"""Commands that run the house."""
