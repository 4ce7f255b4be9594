"""pause RUN: holds a run at the next border."""

import argparse
from typing import Any

from agents.commands import CommandKind
from control.api.cli import Console, storable


class Command(Console):
    help = "Hold a run at its next border; 'unpause' lets it go on."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("--when", choices=["after_batch", "before_call"], default="after_batch")
        parser.add_argument("--reason")

    def act(self, **options: Any) -> None:
        reason = storable(options["reason"]) if options["reason"] else None
        self.issue(options["run"], CommandKind.PAUSE, reason=reason, args={"when": options["when"]})
