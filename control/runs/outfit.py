"""What one claimed run needs before it can be driven: its spec, its log, its workspace, its model."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass

from agents.errors import ConfigError
from agents.events import Event, decode
from agents.spec import RunSpec
from agents.tools import workspace
from agents.tools.registry import Registry, default_tools
from control.fleet import credentials
from control.runs import inbox, log, specs
from control.runs.leases import Claimed
from control.runs.models import Run

logger = logging.getLogger(__name__)

PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the tools work. `own` is what must be put away in the end; an attached child is a guest and has none."""

    path: str
    note: str | None = None
    own: workspace.Prepared | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    spec: RunSpec
    events: Sequence[Event]
    place: Place
    api_key: str | None
    commands: Sequence[inbox.Delivery]


def load(claimed: Claimed) -> Outfit:
    """Blocking. Raises ConfigError (kind, sentence) for what ends the run before it begins."""
    run = claimed.run
    spec = specs.of(run)
    return Outfit(
        spec=spec,
        events=_events(run),
        place=_place(run, spec),
        api_key=_api_key(spec),
        commands=inbox.open_for([run.pk]),
    )


def _api_key(spec: RunSpec) -> str | None:
    try:
        return credentials.key_for(spec.model)
    except credentials.CredentialError as error:
        raise ConfigError(error.code, error.message) from error


def _events(run: Run) -> list[Event]:
    events: list[Event] = []
    while True:
        page = log.read_after(run.pk, events[-1].seq if events else 0, PAGE)
        events.extend(decode(body) for body in page)
        if len(page) < PAGE:
            return events


def _place(run: Run, spec: RunSpec) -> Place:
    if spec.workspace is None:
        raise ConfigError("workspace_missing", "The run has no workspace; start it again with one.")
    if run.parent is not None and not run.detached:
        if not os.path.isdir(spec.workspace.path):
            raise ConfigError("workspace_missing", f"The parent's workspace {spec.workspace.path} is gone.")
        return Place(path=spec.workspace.path)
    prepared = workspace.prepare(spec.workspace, spec.id)
    return Place(path=prepared.path, note=prepared.note, own=prepared)


def registry(spec: RunSpec) -> Registry:
    return Registry(default_tools()).only(spec.tools)


def close(run: Run, place: Place) -> None:
    """Blocking. Put the workspace of an ended run away; what cannot be put away stays where it is, and is told."""
    if place.own is None:
        return
    try:
        workspace.close(place.own)
    except Exception:
        logger.exception("run %s: its workspace %s stays as it is", run.pk, place.path)
