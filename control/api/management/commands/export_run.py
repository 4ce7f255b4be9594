"""export_run RUN: prints a run as one recorded call sequence."""

import argparse
from typing import Any

from control.api import sequence
from control.api.cli import Console
from control.api.finding import find_run


class Command(Console):
    help = "Print a run's calls as one line of JSON, in the form that 'python -m agents judge' reads."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")

    def act(self, **options: Any) -> None:
        self.say(sequence.of_run(find_run(options["run"]).pk))
