"""login_link [USER]: prints a one-time sign-in link."""

import argparse
from typing import Any

from django.conf import settings

from control.accounts import links
from control.accounts.first import first_admin
from control.accounts.models import Role, User
from control.api.acts import Act, Done
from control.api.cli import Console
from control.api.errors import ApiError


class Command(Console):
    help = (
        "Print a link that signs a person in, once, within 15 minutes. Without USER: the first admin, who is made "
        "where nobody is yet."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("user", nargs="?")

    def act(self, **options: Any) -> None:
        user = _find(options["user"])
        path = ""

        def work() -> Done:
            nonlocal path
            path = links.issue(user)
            return Done(body=None)

        self.perform(Act(action="login_link", target=f"user:{user.get_username()}"), work)
        self.stdout.write(settings.TRUSTED_ORIGINS[0].rstrip("/") + path)


def _find(name: str | None) -> User:
    if name is None and (made := first_admin()) is not None:
        return made
    people = User.objects.filter(is_active=True)
    if name is not None:
        found = people.filter(username=name).first()
        if found is None:
            known = ", ".join(people.order_by("pk").values_list("username", flat=True)[:10]) or "nobody yet"
            raise ApiError("unknown_user", f"There is no active user {name!r}. Known: {known}.")
        return found
    admins = [user for user in people.order_by("pk") if user.as_role is Role.ADMIN]
    if not admins:
        raise ApiError(
            "no_admin", "There are people, and none of them is an admin who may sign in. Name one: login_link USER."
        )
    return admins[0]
