"""suggest_limits: fuses above what healthy runs have needed, per agent."""

import argparse
from typing import Any

from control.api.cli import Console
from control.api.errors import ApiError
from control.incidents import suggestions


class Command(Console):
    help = (
        "Limits of turns, steps, tokens, cost and seconds from each agent's completed runs: a quantile and a margin "
        "above it. One line of JSON per agent; with --toml a policy, ready to be looked at and imported."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("agent", nargs="?")
        parser.add_argument("--days", type=int, default=30, metavar="N")
        parser.add_argument("--quantile", type=float, default=0.99, metavar="Q", help="above 0.5 and below 1")
        parser.add_argument("--margin", type=float, default=0.5, metavar="M", help="0.5 is half as much again")
        parser.add_argument("--toml", action="store_true")

    def act(self, **options: Any) -> None:
        asked = suggestions.Asked(
            agent=options["agent"], days=options["days"], quantile=options["quantile"], margin=options["margin"]
        )
        if not (0.5 < asked.quantile < 1 and 0 <= asked.margin <= 10 and 1 <= asked.days <= 3650):
            raise ApiError("bad_numbers", "--quantile is above 0.5 and below 1, --margin 0 to 10, --days 1 to 3650.")
        found = suggestions.suggest(asked)
        if not found:
            raise ApiError("no_runs", "No completed run in these days. Take more --days, or another agent.")
        for one in found:
            if options["toml"]:
                self.stdout.write(one.toml())
            else:
                self.say(one.as_json())
