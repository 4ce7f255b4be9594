"""What the commands for many runs share: the filter as options, and the work with its progress on stderr."""

import argparse
import time
from collections.abc import Mapping
from typing import Any

from control.api.bulk import act_of, decided
from control.api.cli import Console
from control.runs import bulk_progress, bulks

FILTERS = ("all", "ids", "status", "agent", "label", "project", "q")
LOOK_S = 0.1


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every run, narrowed by the filters below if given")
    parser.add_argument("--ids", type=_words, metavar="RUN,...", help="these runs, separated by commas")
    parser.add_argument("--status", help="one or several, separated by commas")
    parser.add_argument("--agent", help="one or several, separated by commas")
    parser.add_argument("--label", metavar="KEY[=VALUE]")
    parser.add_argument("--project")
    parser.add_argument("--q", metavar="TEXT", help="text in the task")
    parser.add_argument("--wait", type=float, default=0.0, metavar="S", help="follow it for so many seconds at most")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def filters_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of the filter."""
    return {name: options[name] for name in FILTERS if options[name]}


class BulkConsole(Console):
    """A command that also acts on many runs."""

    def carry_out(self, wish: bulks.Wish, wait_s: float = 0.0) -> None:
        """Ask all of them, print what was done as JSON; with `wait_s` also how it came out."""
        done = self.perform(act_of(wish), lambda: decided(wish))
        wish.carry_out()
        self.say(done.body)
        if wait_s and done.body["bulk"]:
            self.say(self._followed(done.body["bulk"], wait_s))

    def _followed(self, bulk: str, wait_s: float) -> Any:
        until = time.monotonic() + wait_s
        while True:
            found = bulk_progress.progress(bulk)
            if found is None or found["finished"] or time.monotonic() > until:
                return found
            time.sleep(LOOK_S)
