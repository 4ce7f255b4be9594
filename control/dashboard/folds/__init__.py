"""The view as a pure fold: events of one run, in order of `seq`, to the parts of its page."""

from control.dashboard.folds import calls, story
from control.dashboard.folds.fold import CHART, MARKS, OUTLINE, TURNS, RunFold

__all__ = ["CHART", "MARKS", "OUTLINE", "TURNS", "RunFold", "calls", "story"]
