"""What the commands share: the caller, and refusals as one sentence on stderr with exit code 2."""

import argparse
import getpass
import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.db import OperationalError, ProgrammingError, transaction
from pydantic import ValidationError

from agents.commands import CommandKind, Scope
from control.accounts import audit
from control.accounts.models import Role
from control.accounts.roles import Actor
from control.api.acts import Act, Done, write
from control.api.answers import dumps
from control.api.commands import issue
from control.api.errors import as_api_error
from control.api.schemas import LimitsIn

BAD_INPUT = 2


class Console(BaseCommand):
    """Base of our commands. Subclasses write `act`; whoever has the database may do everything in it."""

    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.act(**options)
        except ValidationError as error:
            raise CommandError(_first_problem(error), returncode=BAD_INPUT) from error
        except (OperationalError, ProgrammingError) as error:
            message = "The database does not answer or is not set up. Run 'manage.py migrate', or start 'manage.py up'."
            raise CommandError(f"{message} ({str(error).splitlines()[0]})", returncode=1) from error
        except DatabaseError as error:
            raise CommandError(f"The database refused this: {str(error).splitlines()[0]}", returncode=1) from error
        except Exception as error:
            refusal = as_api_error(error)
            if refusal is None:
                raise
            raise CommandError(refusal.message, returncode=BAD_INPUT) from error

    @abstractmethod
    def act(self, **options: Any) -> None: ...

    def say(self, body: Any) -> None:
        """One line of JSON on stdout."""
        self.stdout.write(dumps(body).decode())

    def perform(self, act: Act, work: Any) -> Done:
        """Like an act of the API, without a key: audited, in one transaction; refusals are audited as well."""
        actor = me()
        try:
            with transaction.atomic():
                done: Done = work()
                write(actor, act, done)
                return done
        except Exception as error:
            refusal = as_api_error(error)
            if refusal is None:
                raise
            audit.record(actor, act.action, act.target, reason=act.reason, filter=act.filter, result=refusal.code)
            raise refusal from error

    def issue(self, run: str, kind: CommandKind, **given: Any) -> None:
        """Issue one command to one run and print the answer."""
        scope = Scope(given.pop("scope", Scope.RUN))
        act = Act(action=kind.value, target=f"run:{run[:60]}", reason=given.get("reason"))
        self.say(self.perform(act, lambda: issue(run, kind, by=me().name, scope=scope, **given)).body)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"])
    return f"{field}: {problem['msg']}" if field else str(problem["msg"])


def me() -> Actor:
    """The person at the command line, by the name of the system account."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return Actor(name=f"cli:{name}", role=Role.ADMIN)


def storable(text: str) -> str:
    """An argument as text that every database stores; arguments are bytes and may be no UTF-8."""
    made = os.fsencode(text).decode("utf-8", "replace")
    return made.replace("\x00", "\ufffd")


def add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-turns", type=int, metavar="N", help="model calls with their tool calls")
    parser.add_argument("--max-steps", type=int, metavar="N", help="tool calls")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens in and out")
    parser.add_argument("--max-cost", metavar="USD", help="US dollars, e.g. 2.50")
    parser.add_argument("--max-seconds", type=float, metavar="S", help="wall clock")


def limits_of(options: Mapping[str, Any]) -> dict[str, str]:
    """The limits given as options, each as a decimal string. Raises ValidationError for a bad one."""
    return LimitsIn(**{name: options.get(name) for name in LimitsIn.model_fields}).given()


def line(body: bytes) -> str:
    """An event's bytes as one line; a body never holds a raw newline, for it is JSON."""
    return body.decode() if b"\n" not in body else orjson.dumps(orjson.loads(body)).decode()
