"""`manage.py up`: the whole house on this machine, with one command."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from control import logs
from control.accounts import links
from control.accounts.first import first_admin
from control.runs import ports
from control.runs.supervisor import Child, Supervisor, manage

DRILL_PORT = 8089


class Command(BaseCommand):
    help = "Migrates, makes the first admin, then runs web, workers, desk and the drill model server until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument("--workers", type=int, default=1)
        parser.add_argument("--no-drill", action="store_true", help="without the scripted models of the drill server")

    def handle(self, *args: Any, host: str, port: int, workers: int, no_drill: bool, **options: Any) -> None:
        logs.configure("up")
        if (problem := ports.taken(host, port)) is not None:
            raise CommandError(problem)
        if workers < 1:
            raise CommandError("--workers must be at least 1: without a worker no run is driven.")
        call_command("migrate", verbosity=0, interactive=False)
        path = self._first_link()
        house = Supervisor(say=self._say)
        house.run(self._children(host, port, workers, no_drill), ready=lambda: self._welcome(host, port, path))

    def _children(self, host: str, port: int, workers: int, no_drill: bool) -> list[Child]:
        environment = {"HOST": host, "PORT": str(port)}
        children = []
        if not no_drill:
            drill = ports.free(DRILL_PORT)
            environment["DRILL_URL"] = f"http://127.0.0.1:{drill}/v1"
            # Commands such as run_agent are started outside of us and read the address there.
            settings.DRILL_URL_FILE.write_text(environment["DRILL_URL"])
            children.append(Child.module("drill", "agents.drill", "--port", str(drill)))
        address = f"http://{ports.shown(host)}:{port}/healthz"
        web = manage("web", "web", "--host", host, "--port", str(port), environment=environment, answers=address)
        children.append(web)
        for number in range(1, workers + 1):
            children.append(manage(f"worker {number}", "worker", environment=environment))
        children.append(manage("desk", "desk", environment=environment))
        return children

    def _first_link(self) -> str | None:
        """On the first start: the admin, without a password, and the path of a link that signs in once."""
        admin = first_admin()
        return links.issue(admin) if admin is not None else None

    def _welcome(self, host: str, port: int, path: str | None) -> None:
        base = f"http://{ports.shown(host)}:{port}"
        self._say(f"Pilothouse is up at {base}")
        if path is not None:
            self._say(f"Sign in once, within 15 minutes, as admin: {base}{path}")
        else:
            self._say("Sign in: 'manage.py login_link' prints a one-time link.")
        self._say("Ctrl-C stops everything.")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
