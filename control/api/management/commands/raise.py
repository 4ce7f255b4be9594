"""raise RUN --max-cost ...: raises the limits of a run."""

import argparse
from typing import Any

from agents.commands import CommandKind
from control.api.cli import Console, add_limits, limits_of, storable
from control.api.commands import raise_args


class Command(Console):
    help = "Raise limits of a run that is under way."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("--reason", default="raised from the command line")
        add_limits(parser)

    def act(self, **options: Any) -> None:
        args = raise_args(limits_of(options))
        self.issue(options["run"], CommandKind.RAISE, reason=storable(options["reason"]), args=args)
