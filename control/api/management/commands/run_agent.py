"""run_agent AGENT TASK: starts a run and prints its id; with --watch follows it as JSON lines."""

import argparse
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from agents.spec import Status
from control.api.acts import Act, Done
from control.api.cli import Console, add_limits, limits_of, line, me, storable
from control.api.errors import ApiError
from control.api.policy_files import policy_of
from control.api.runs import start_request
from control.api.watch import follow
from control.runs import starts
from control.runs.models import Run

EXIT = {
    Status.COMPLETED: 0,
    Status.EXHAUSTED: 3,
    Status.TRIPPED: 4,
    Status.INTERRUPTED: 5,
    Status.FAILED: 6,
    Status.LOST: 7,
}


class Command(Console):
    help = (
        "Start a run and print its id. With --watch its events follow as JSON lines (the id goes to stderr); Ctrl-C "
        "detaches and leaves it running. Exit: 0 completed, 2 bad input, 3 exhausted, 4 tripped, 5 interrupted, "
        "6 failed, 7 lost."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("agent")
        parser.add_argument("task")
        parser.add_argument("--model")
        parser.add_argument("--base-url", help="the address before /chat/completions, usually ending in /v1")
        parser.add_argument("--credential", help="a label from CREDENTIALS_FILE")
        parser.add_argument("--workspace", metavar="DIR")
        parser.add_argument("--branch")
        parser.add_argument("--dry-run", action="store_true", help="tools with effects only say what they would do")
        parser.add_argument(
            "--policy", metavar="NAME|FILE", help="a policy's name, or a TOML or JSON file for this run"
        )
        parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="may be given repeatedly")
        parser.add_argument("--project")
        parser.add_argument("--priority", type=int, default=0, help="-100 to 100: the higher, the sooner it starts")
        parser.add_argument("--watch", action="store_true")
        add_limits(parser)

    def act(self, **options: Any) -> None:
        given = {name: options[name] for name in ("model", "base_url", "credential", "branch", "dry_run", "project")}
        given |= {"agent": storable(options["agent"]), "task": storable(options["task"])}
        if not -100 <= options["priority"] <= 100:
            raise CommandError("--priority must be between -100 and 100.")
        given["priority"] = options["priority"]
        given |= {"limits": limits_of(options), "labels": _labels(options["label"])}
        if options["workspace"] is not None:
            given["workspace"] = str(Path(options["workspace"]).expanduser().absolute())
        if options["policy"] is not None:
            given["policy"] = policy_of(options["policy"])
        run = self._start(given)
        if not options["watch"]:
            self.stdout.write(run.pk)
            return
        self.stderr.write(run.pk, style_func=str)
        self._watch(run.pk)

    def _start(self, given: dict[str, Any]) -> Run:
        made: list[Run] = []

        def work() -> Done:
            run = starts.start(start_request(given), by=me().name)
            made.append(run)
            return Done(body=None, target=f"run:{run.pk}", after={"agent": run.agent, "status": run.status})

        self.perform(Act(action="start", target=f"agent:{given['agent']}"), work)
        return made[0]

    def _watch(self, run: str) -> None:
        try:
            status = follow(run, lambda body: self.stdout.write(line(body)), self.stdout.flush)
        except KeyboardInterrupt:
            raise CommandError(f"Detached; run {run} goes on.", returncode=130) from None
        except BrokenPipeError:
            # Whoever read us has gone, which is a way of detaching too.
            sys.stderr.close()
            sys.exit(0)
        if EXIT[status]:
            sys.exit(EXIT[status])


def _labels(given: list[str]) -> dict[str, str]:
    labels = {}
    for word in given:
        key, sign, value = storable(word).partition("=")
        if not sign or not key.strip():
            raise ApiError("bad_label", f"A label is given as KEY=VALUE; {word!r} is not.")
        labels[key.strip()] = value.strip()
    return labels
