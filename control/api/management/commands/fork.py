"""fork RUN [--turn N] [--note TEXT]: a new run that goes on from an ended one."""

import argparse
from typing import Any

from control.api.acts import Act
from control.api.cli import Console, me, storable
from control.api.commands import forked


class Command(Console):
    help = "Go on from an ended run: its history up to a turn, its files, a note. Prints the answer as JSON."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument(
            "--turn", type=int, metavar="N", help="the last turn of the history; its last one if left out"
        )
        parser.add_argument("--note", metavar="TEXT", help="what the model reads next")

    def act(self, **options: Any) -> None:
        run, note = options["run"], options["note"]
        act = Act(action="fork", target=f"run:{run[:60]}")
        note = storable(note) if note else None
        self.say(self.perform(act, lambda: forked(run, by=me().name, turn=options["turn"], note=note)).body)
