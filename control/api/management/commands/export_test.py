"""export_test RUN: the run as a regression test of the fuse that stops it."""

import argparse
from pathlib import Path
from typing import Any

from control.api.cli import Console, storable
from control.api.errors import ApiError
from control.api.finding import find_run
from control.incidents import regression


class Command(Console):
    help = (
        "Write a fixture, a policy and a test for pytest that fails when the policy no longer stops this run at that "
        "step. The test needs only `python -m agents judge`; its payloads are redacted."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("--policy", metavar="NAME", help="another than the one that the run had")
        parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="by default the current directory")

    def act(self, **options: Any) -> None:
        made = regression.export(find_run(storable(options["run"])), options["policy"])
        out: Path = options["out"]
        try:
            out.mkdir(parents=True, exist_ok=True)
            for name, text in made.files.items():
                (out / name).write_text(text, encoding="utf-8")
                self.stdout.write(str(out / name))
        except OSError as error:
            raise ApiError("not_written", f"{out} cannot be written to: {error.strerror or error}.") from error
