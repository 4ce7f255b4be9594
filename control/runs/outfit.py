"""What one claimed run needs before it can be driven: its spec, its log, its workspace, a model that answers to it."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.errors import ConfigError
from agents.events import Event, decode
from agents.ports import Notebook, ToolServers
from agents.spec import RunSpec
from agents.tools import workspace
from agents.tools.mcp.config import servers_of
from agents.tools.mcp.tools import McpServers
from agents.tools.memory import Remember
from agents.tools.registry import Registry, default_tools
from control.runs import inbox, log, models_pool, specs
from control.runs.leases import Claimed
from control.runs.models import Run

logger = logging.getLogger(__name__)

PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the tools work. What is its `own` a run puts away in the end; an attached child is its parent's guest."""

    path: str
    note: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    spec: RunSpec
    events: Sequence[Event]
    place: Place
    commands: Sequence[inbox.Delivery]


def load(claimed: Claimed) -> Outfit:
    """Blocking. Raises ConfigError (kind, sentence) for what ends the run before it begins."""
    run = claimed.run
    spec = specs.of(run)
    models_pool.check(spec)
    return Outfit(
        spec=spec,
        events=_events(run),
        place=_place(run, spec),
        commands=inbox.open_for([run.pk]),
    )


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
    return Place(path=prepared.path, note=prepared.note, own=True)


def registry(spec: RunSpec, notebook: Notebook) -> Registry:
    """The tools that the agent names; the network and the notebook are only for those that do."""
    return Registry((*default_tools(web=True), Remember(notebook))).only(spec.tools)


def servers(spec: RunSpec, place: Place, marks: Mapping[str, str]) -> ToolServers | None:
    """The agent's MCP servers; None if it has none. Raises ConfigError."""
    configured = servers_of(spec.mcp_servers)
    return McpServers(configured, cwd=place.path, environment=marks) if configured else None


def close(run: Run) -> None:
    """Blocking. Put the workspace of an ended run away; what cannot be put away stays where it is, and is told."""
    spec = specs.of(run)
    if spec.workspace is None:
        return
    try:
        closed = workspace.close(spec.workspace, run.pk)
    except Exception:
        logger.exception("run %s: its workspace %s stays as it is", run.pk, spec.workspace.path)
    else:
        if closed.note:
            logger.warning("run %s: %s", run.pk, closed.note)
