"""steer RUN NOTE: gives a run a note at its next turn border."""

import argparse
from typing import Any

from agents.commands import CommandKind
from control.api.cli import Console, storable
from control.api.commands import steer_args


class Command(Console):
    help = "Give a run a note; it joins the conversation at the next turn border."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("note")

    def act(self, **options: Any) -> None:
        self.issue(options["run"], CommandKind.STEER, args=steer_args(storable(options["note"])))
