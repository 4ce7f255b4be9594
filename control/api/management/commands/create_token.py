"""create_token NAME --role ROLE: prints a bearer token and nothing else, once."""

import argparse
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from control.accounts.models import Role, Token
from control.api.acts import Act, Done
from control.api.cli import Console, storable
from control.api.errors import ApiError


class Command(Console):
    help = "Make a bearer token for the API and print it. It is shown this once and kept nowhere."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", help="what the token is for; the audit trail shows it")
        parser.add_argument("--role", required=True, choices=Role.values)

    def act(self, **options: Any) -> None:
        name = storable(options["name"]).strip()
        if not 0 < len(name) <= 100:
            raise ApiError("bad_name", "A token's name has 1 to 100 characters.")
        secret = ""

        def work() -> Done:
            nonlocal secret
            try:
                with transaction.atomic():
                    _, secret = Token.issue(name, Role(options["role"]), timezone.now())
            except IntegrityError as error:
                raise ApiError("name_taken", f"There is a token {name!r} already. Choose another name.") from error
            return Done(body=None, after={"role": options["role"]})

        self.perform(Act(action="create_token", target=f"token:{name}"), work)
        self.stdout.write(secret)
