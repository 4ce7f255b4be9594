"""Finding what an address names; an id that is unknown and one that is no id are told alike."""

from control.api.errors import not_found
from control.runs.models import Command, Run
from control.runs.selection import as_id


def find_run(given: str) -> Run:
    """The run, or 404 `not_found`."""
    known = as_id(given)
    run = Run.objects.filter(pk=known).first() if known else None
    if run is None:
        raise not_found("run", given)
    return run


def find_command(given: str) -> Command:
    """The command, or 404 `not_found`."""
    known = as_id(given)
    command = Command.objects.filter(pk=known).first() if known else None
    if command is None:
        raise not_found("command", given)
    return command
