"""answer RUN CALL TEXT: answers the question that a run waits with; --decision settles an approval."""

import argparse
import json
from typing import Any

from django.core.management import CommandError

from agents.commands import CommandKind
from control.api.cli import Console, storable
from control.api.commands import answer_to
from control.api.schemas import AnswerIn


class Command(Console):
    help = "Answer the question, or settle the approval, that a call of a run waits for."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("run")
        parser.add_argument("call", help="the id of the waiting call; the run's page and its run.waiting event name it")
        parser.add_argument("text", nargs="?", help="the answer to a question")
        parser.add_argument("--decision", choices=("approve", "deny", "edit"), help="what becomes of an approval")
        parser.add_argument(
            "--args", dest="edited", help="with --decision edit: the arguments to run with, as one JSON object"
        )
        parser.add_argument("--reason", help="with --decision deny: why; the model is told")

    def act(self, **options: Any) -> None:
        given: dict[str, Any] = {"decision": options["decision"], "args": _object(options["edited"])}
        given |= {name: options[name] and storable(options[name]) for name in ("call", "text", "reason")}
        asked = AnswerIn(**given)
        self.issue(options["run"], CommandKind.ANSWER, reason=asked.reason, args=answer_to(options["run"], asked))


def _object(raw: str | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise CommandError(f"--args is no valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise CommandError("--args is one JSON object, in braces.")
    return value
