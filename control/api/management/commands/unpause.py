"""unpause RUN: lets a paused run go on."""

import argparse
from typing import Any

from agents.commands import CommandKind
from control.api.cli import Console


class Command(Console):
    help = "Let a paused run, or one that waits for quota, go on."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")

    def act(self, **options: Any) -> None:
        self.issue(options["run"], CommandKind.UNPAUSE)
