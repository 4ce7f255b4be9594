"""prune --before DATE: drops runs that ended before a date, and incidents and backtests that were over, never audit
rows."""

import argparse
from datetime import UTC, datetime
from typing import Any

from control.api import retention
from control.api.acts import Act, Done
from control.api.cli import Console
from control.api.errors import ApiError


class Command(Console):
    help = (
        "Drop finished runs, with their logs and postmortems, that ended before DATE, incidents resolved by then with "
        "their deliveries, and backtests. A tree of runs stays or goes as a whole, and an open incident stays. Audit "
        "rows stay, and so does content that several runs may share (prompts, tool schemas, large results)."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--before", required=True, metavar="DATE", help="2026-01-31 or a time in RFC 3339; UTC")
        parser.add_argument("--dry-run", action="store_true")

    def act(self, **options: Any) -> None:
        before = _moment(options["before"])
        if options["dry_run"]:
            self.say({"dry_run": True, "before": before} | retention.count(before))
            return
        gone = retention.drop(before)
        act = Act(action="prune", target="runs", filter={"before": before})
        self.perform(act, lambda: Done(body=gone, after=gone))
        self.say({"dry_run": False, "before": before} | gone)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ApiError("bad_date", f"{text!r} is no date. Write it like 2026-01-31.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
