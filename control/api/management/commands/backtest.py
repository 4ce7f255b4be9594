"""backtest POLICY…: what policies would have done to runs that are over."""

import argparse
import time
from typing import Any

from control.api import backtests
from control.api.acts import Act
from control.api.cli import Console, me, storable
from control.api.policy_files import policy_of
from control.incidents.backtest import asking, results, work
from control.incidents.models_backtest import Backtest, BacktestPiece

LOOK_S = 0.5


class Command(Console):
    help = (
        "Try one to four policies (names, or TOML or JSON files) on runs that are over, and print what they would have "
        "observed, blocked and stopped. The desk does the work; with --here this process does it. Ctrl-C stops waiting."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("policy", nargs="+", metavar="NAME|FILE")
        for name in ("status", "agent", "label", "project", "q"):
            parser.add_argument(f"--{name}", help="as in the filter of GET /api/runs")
        parser.add_argument("--run", action="append", metavar="RUN", help="only this run; may be given repeatedly")
        parser.add_argument("--days", type=int, metavar="N", help="only runs of the last N days")
        parser.add_argument("--limit", type=int, default=10_000, metavar="N", help="the newest N")
        parser.add_argument("--here", action="store_true", help="judge in this process; no desk is needed")
        parser.add_argument("--no-wait", action="store_true", help="print the id and leave it to the desk")

    def act(self, **options: Any) -> None:
        names = ("status", "agent", "label", "project", "q")
        given = {name: storable(options[name]) for name in names if options[name] is not None}
        wanted = backtests.question(
            backtests.BacktestIn(
                policies=[policy_of(storable(one)) for one in options["policy"]],
                filter=backtests.RunsIn(**given, ids=options["run"]),
                days=options["days"],
                limit=options["limit"],
            )
        )
        act = Act(action="backtest", target="runs", filter=wanted.as_json())
        made = self.perform(act, lambda: backtests.asked(wanted, me().name)).body["id"]
        if options["no_wait"]:
            self.stdout.write(made)
            return
        self.stderr.write(made, style_func=str)
        if options["here"]:
            for piece in BacktestPiece.objects.filter(backtest=made).order_by("number").values_list("pk", flat=True):
                work.judge(piece)
        self.say(results.told(self._over(made)))

    def _over(self, made: str) -> Backtest:
        shown = -1
        while True:
            row = Backtest.objects.get(pk=made)
            done = asking.progress(row)["done"]
            if done != shown:
                self.stderr.write(f"{done} of {row.total} runs judged", style_func=str)
                shown = done
            if row.state != Backtest.State.RUNNING:
                return row
            time.sleep(LOOK_S)
