"""answer RUN CALL TEXT: answers the question that a run waits with."""

import argparse
from typing import Any

from agents.commands import CommandKind
from control.api.cli import Console, storable
from control.api.commands import answer_args
from control.api.schemas import AnswerIn


class Command(Console):
    help = "Answer the question that a call of a run waits with."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("call", help="the id of the waiting call; the run's page and its run.waiting event name it")
        parser.add_argument("text")

    def act(self, **options: Any) -> None:
        asked = AnswerIn(call=storable(options["call"]), text=storable(options["text"]))
        self.issue(options["run"], CommandKind.ANSWER, args=answer_args(asked))
