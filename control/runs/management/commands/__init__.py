"""Commands that run the house: `up`, `web`, `worker`, `desk`."""
