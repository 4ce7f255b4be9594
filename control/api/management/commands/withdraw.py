"""withdraw COMMAND: takes back a note that no model has read yet."""

import argparse
from typing import Any

from control.api.acts import Act
from control.api.cli import Console, me
from control.api.commands import withdraw_command


class Command(Console):
    help = "Take back a note by the id of its command; 'changed' is false, with the reason, once it has been read."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("command_id", metavar="COMMAND")

    def act(self, **options: Any) -> None:
        command = options["command_id"]
        act = Act(action="withdraw", target=f"command:{command[:60]}")
        self.say(self.perform(act, lambda: withdraw_command(command, by=me().name)).body)
