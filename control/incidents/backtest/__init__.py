"""Backtest: what a policy would have done to runs that are over, judged by the guard that judges live ones."""
