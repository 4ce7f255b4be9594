"""What one claimed run needs before it can be driven: its spec, its log, its workspace, a model that answers to it."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.commands import Command
from agents.drill.scenarios import projects
from agents.engine.books import MemoryBook, MemoryLedger
from agents.engine.replaying import RecordedModels, Recording, recorded_tools
from agents.errors import ConfigError
from agents.events import Event, decode
from agents.ports import Artifacts, Clock, Notebook, ToolServers
from agents.spec import RunSpec
from agents.tools import workspace
from agents.tools.mcp.config import servers_of
from agents.tools.mcp.tools import McpServers
from agents.tools.memory import Remember
from agents.tools.registry import Registry, default_tools
from control.runs import artifacts, inbox, log, models_of_runs, models_pool, specs
from control.runs.dbthreads import DbThreads
from control.runs.leases import Claimed
from control.runs.ledger.hosted import HostLedger
from control.runs.models import Run
from control.runs.models_pool import PooledModels

logger = logging.getLogger(__name__)

PAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the tools work. What is its `own` a run puts away in the end; an attached child is its parent's guest."""

    path: str
    note: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a run that plays a recorded one gets instead of a model and tools. `schemas`: what tools were named."""

    recording: Recording
    schemas: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    spec: RunSpec
    events: Sequence[Event]
    place: Place
    commands: Sequence[inbox.Delivery]
    played: Played | None = None


def load(claimed: Claimed) -> Outfit:
    """Blocking. Raises ConfigError (kind, sentence) for what ends the run before it begins."""
    run = claimed.run
    spec = specs.of(run)
    events = _events(run.pk)
    played = _played(spec, events) if spec.recorded else None
    if played is None:
        models_pool.check(spec)
    early = [inbox.Delivery(run=run.pk, command=one) for one in played.recording.early] if played else []
    return Outfit(
        spec=spec,
        events=events,
        place=_place(run, spec),
        commands=[*early, *inbox.open_for([run.pk])],
        played=played,
    )


def _played(spec: RunSpec, own: Sequence[Event]) -> Played:
    """Raises ConfigError if the run that was recorded is gone."""
    given = spec.recorded or {}
    events = _events(str(given.get("run")))
    if not events:
        raise ConfigError("recording_gone", f"The log of run {given.get('run')} is not kept any more.")
    recording = Recording(events, from_turn=int(given.get("from_turn") or 0), done=own)
    try:
        schemas = artifacts.get(str((recording.tools or {}).get("sha256")))
    except LookupError:
        schemas = None
    return Played(recording=recording, schemas=schemas)


def _events(run: str) -> list[Event]:
    events: list[Event] = []
    while True:
        page = log.read_after(run, events[-1].seq if events else 0, PAGE)
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
    prepared = workspace.prepare(spec.workspace, spec.id, start=spec.workspace.start or "HEAD")
    return Place(path=prepared.path, note=prepared.note, own=True)


def models(kit: Outfit, database: DbThreads, say: Callable[[Command], None]) -> PooledModels | RecordedModels:
    """What answers; `say` takes what people had said to a run that is played again."""
    if kit.played is not None:
        return RecordedModels(kit.played.recording, kit.spec.model, say)
    return PooledModels(kit.spec, database)


def ledger(kit: Outfit, database: DbThreads, clock: Clock, *, worker: str, epoch: int) -> HostLedger | MemoryLedger:
    """What it is paid from. Recorded answers were paid for once, so they take nothing of what others share."""
    if kit.played is not None:
        return MemoryBook().of(kit.spec)
    return HostLedger(kit.spec, database, clock, worker=worker, epoch=epoch)


def tools(kit: Outfit, notebook: Notebook, kept: Artifacts) -> Registry:
    """The run's tools; one that plays a recorded run has that one's, which do nothing."""
    if kit.played is not None:
        return recorded_tools(kit.played.recording, kit.played.schemas, kept.get)
    return registry(kit.spec, notebook)


def registry(spec: RunSpec, notebook: Notebook) -> Registry:
    """The tools that the agent names; the network and the notebook are only for those that do. A drill model brings
    along what only it has."""
    own = Registry((*default_tools(web=True), Remember(notebook))).only(spec.tools)
    scenario = models_of_runs.drill_of(spec.model)
    return own.extended(scenario.own_tools()) if scenario else own


def environment(spec: RunSpec, marks: Mapping[str, str]) -> Mapping[str, str]:
    """What tool processes get: the marks, and for a drill model the Python that tests its projects."""
    return {**projects.environment(), **marks} if models_of_runs.drill_of(spec.model) else marks


def servers(spec: RunSpec, place: Place, marks: Mapping[str, str]) -> ToolServers | None:
    """The agent's MCP servers; None if it has none. Raises ConfigError."""
    if spec.recorded:
        return None
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
