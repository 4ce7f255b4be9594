"""steer RUN NOTE | --all --status ... NOTE: gives one run a note at its next turn border, or every one that matches."""

import argparse
from typing import Any

from agents.commands import CommandKind
from control.api.bulk_cli import BulkConsole, add_filters, filters_of
from control.api.cli import me, storable
from control.api.commands import steer_args
from control.api.errors import ApiError
from control.runs import bulks, many
from control.runs.selection import Selection


class Command(BulkConsole):
    help = "Give a run a note, or every run that matches a filter; it joins the conversation at the next turn border."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("words", nargs="+", metavar="[RUN] NOTE", help="RUN only without a filter")
        add_filters(parser)
        parser.add_argument("--dry-run", action="store_true", help="say who would get it and who not, and why")

    def act(self, **options: Any) -> None:
        filters, words = filters_of(options), options["words"]
        if len(words) != (1 if filters else 2):
            raise ApiError(
                "bad_choice", "Give RUN and NOTE, or NOTE alone with --all, --ids, --status, --agent, --label."
            )
        args = steer_args(storable(words[-1]))
        if not filters:
            if options["dry_run"]:
                self.say(many.preview(Selection.of(ids=[words[0]]), CommandKind.STEER))
                return
            self.issue(words[0], CommandKind.STEER, args=args)
            return
        chosen = Selection.of(**filters)
        if options["dry_run"]:
            self.say(many.preview(chosen, CommandKind.STEER))
            return
        wish = bulks.Wish(kind=CommandKind.STEER, chosen=chosen, by=me().name, reason=None, args=args)
        self.carry_out(wish, options["wait"])
