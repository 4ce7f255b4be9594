"""interrupt RUN | --all | --status --agent --label ...: stops one run with its sub-agents, or many by filter."""

import argparse
from typing import Any

from agents.commands import CommandKind, Scope
from control.api.bulk_cli import BulkConsole, add_filters, filters_of
from control.api.cli import me, storable
from control.api.errors import ApiError
from control.runs import bulks, many
from control.runs.selection import Selection


class Command(BulkConsole):
    help = "Stop one run and its sub-agents, or every run that matches a filter. Prints what was done as JSON."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run", nargs="?")
        add_filters(parser)
        parser.add_argument("--reason")
        parser.add_argument("--scope", choices=[scope.value for scope in Scope], default=Scope.SUBTREE.value)
        parser.add_argument("--dry-run", action="store_true", help="say who would be stopped and who not, and why")
        parser.add_argument("--block-new-starts", action="store_true", help="refuse matching starts until it is lifted")

    def act(self, **options: Any) -> None:
        filters = filters_of(options)
        if (options["run"] is None) == (not filters):
            raise ApiError(
                "bad_choice", "Name one run, or choose with --all, --status, --agent, --label; one of the two."
            )
        reason = storable(options["reason"]) if options["reason"] else None
        if options["run"] is None:
            self._many(Selection.of(**filters), reason or "stopped from the command line", options)
            return
        if options["block_new_starts"]:
            raise ApiError("bad_choice", "--block-new-starts goes with a filter, not with one run.")
        if options["dry_run"]:
            self.say(many.preview(Selection.of(ids=[options["run"]]), block_new_starts=False))
            return
        self.issue(options["run"], CommandKind.INTERRUPT, scope=options["scope"], reason=reason)

    def _many(self, chosen: Selection, reason: str, options: dict[str, Any]) -> None:
        block = options["block_new_starts"]
        if options["dry_run"]:
            chosen.refuse_empty()
            self.say(many.preview(chosen, block_new_starts=block))
            return
        wish = bulks.Wish(kind=CommandKind.INTERRUPT, chosen=chosen, by=me().name, reason=reason, block=block)
        self.carry_out(wish, options["wait"])
