"""replay RUN: plays an ended run again, from its recorded answers or with a scratch model."""

import argparse
from typing import Any

from control.api import replays
from control.api.acts import Act
from control.api.cli import Console, me, storable
from control.api.policy_files import policy_of
from control.api.watch import follow
from control.incidents import replaying
from control.runs.models import Run


class Command(Console):
    help = (
        "Play an ended run again and print the new run's id: its recorded answers by default, which changes and costs "
        "nothing, or with --live a scratch model, dry unless --no-dry-run is given, without a key unless --credential "
        "names one. With --watch it waits and prints where the two part."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("--policy", metavar="NAME|FILE", help="instead of the one that the run had")
        parser.add_argument("--from-turn", type=int, metavar="N", help="take the turns before it as they were")
        parser.add_argument("--live", action="store_true", help="ask the model that --base-url and --model name")
        parser.add_argument("--base-url")
        parser.add_argument("--model")
        parser.add_argument("--credential", help="a label; without it no key goes along")
        parser.add_argument("--branch", help="where a live replay works, if it is no dry run")
        parser.add_argument("--no-dry-run", action="store_true", help="a live replay's tools do what they say")
        parser.add_argument("--watch", action="store_true", help="wait for its end, print how it compares")

    def act(self, **options: Any) -> None:
        given = {name: options[name] for name in ("live", "base_url", "model", "credential", "branch", "from_turn")}
        policy = policy_of(options["policy"]) if options["policy"] is not None else None
        wanted = replays.asked(replays.ReplayIn(**given, policy=policy, dry_run=not options["no_dry_run"]))
        run = storable(options["run"])
        act = Act(action="replay", target=f"run:{run[:60]}")
        made = self.perform(act, lambda: replays.replayed(run, wanted, me().name)).body["id"]
        self.stdout.write(made)
        if options["watch"]:
            self.stdout.flush()
            follow(made, lambda body: None, lambda: None)
            self.say(replaying.compare(Run.objects.get(pk=made)))
