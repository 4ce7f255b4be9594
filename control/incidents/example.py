"""The night of the postmortem as a guided example: a run that nobody guards, the incident it becomes, the webhook that
tells of it, and the policy that would have stopped it earlier.

The drill server plays the model and takes the webhook; everything between is what every run goes through.
"""

import base64
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
from django.conf import settings
from django.db.models import QuerySet

from agents.drill.scenarios import SCENARIOS
from agents.spec import FINAL
from control.incidents import routes, sealing
from control.incidents.models import AlertRoute, Delivery, Incident, Severity
from control.incidents.postmortem.filing import document_of
from control.incidents.postmortem.fold import NotFinished
from control.incidents.postmortem.sheet import Tried, sheet_of
from control.runs import starts
from control.runs.models import Run

logger = logging.getLogger(__name__)

ROUTE = "The night, drill receiver"
PROJECT = "the-night"
LABELS: Mapping[str, str] = {"example": "night"}
MODEL = "flaky-test"
# A night without a guard: far too loose a fuse is all that ends it.
POLICY = "off"
STEPS = 24
_PATIENCE_S = 2.0


class NoDrill(Exception):
    """There is no drill server to play with; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that has to happen. `state`: done, now (the next to come), later, failed. `seconds` from the start."""

    name: str
    word: str
    state: str
    text: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """How far the example is. `letters` is what the receiver shows; None where it did not answer."""

    run: Run
    steps: tuple[Step, ...]
    over: bool
    incident: Incident | None
    delivery: Delivery | None
    letters: list[dict[str, Any]] | None
    tried: tuple[Tried, ...]


def why_not() -> str:
    """Why there is nothing to play with; "" if there is."""
    try:
        _ask("GET", "/models")
    except NoDrill as error:
        return str(error)
    return ""


def all_runs() -> QuerySet[Run]:
    """The example's own, whatever else there may be in a project of this name."""
    return Run.objects.filter(project=PROJECT, labels__example=LABELS["example"])


def runs() -> list[Run]:
    """The latest nights, newest first."""
    return list(all_runs().filter(parent=None).defer("spec").order_by("-created_at")[:5])


def route(by: str, now: datetime) -> AlertRoute:
    """The route to the receiver, made or made fit again: the server's address changes from start to start, and each
    time the secret does too. It takes what this example's runs trip over and nothing else. Raises NoDrill."""
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    opened = _ask("POST", "/drill/alerts", {"secret": secret})
    wish = routes.Wish(
        name=ROUTE,
        transport="webhook",
        secrets={"url": _address(str(opened.get("path", ""))), "secret": secret},
        least=Severity.WARNING.value,
        rules=("tripped",),
        projects=(PROJECT,),
        repeat_hours=0,
        group_seconds=0,
    )
    made = routes.save(wish, by=by, now=now, route=AlertRoute.objects.filter(example=True).first())
    AlertRoute.objects.filter(pk=made.pk).update(example=True)
    made.example = True
    return made


def close(route: AlertRoute) -> None:
    """Have the receiver forget the place of a route, and what came to it; one that is gone has forgotten already."""
    try:
        _ask("DELETE", sealing.opened(route.sealed)["url"].removeprefix(_address("")))
    except (NoDrill, sealing.Unreadable, KeyError):
        logger.info("the receiver of the example's route did not answer, or is another one by now")


def start(by: str) -> Run:
    """The night itself. Raises StartRefused."""
    return starts.start(
        starts.StartRequest(
            agent="default",
            task=SCENARIOS[MODEL].task,
            model=MODEL,
            base_url=settings.DRILL_URL,
            policy=POLICY,
            limits={"max_steps": STEPS},
            labels=LABELS,
            project=PROJECT,
        ),
        by=by,
    )


def night(run: Run) -> Night:
    """How far it is, from the rows and from what the receiver shows."""
    incident = Incident.objects.filter(run_id=run.pk, rule="tripped").order_by("opened_at").first()
    delivery = None
    if incident is not None:
        sent = Delivery.objects.filter(incident=incident, action=Delivery.Action.TRIGGER, route__example=True)
        delivery = sent.select_related("route").order_by("created_at").first()
    letters = _letters(incident.pk) if delivery is not None and delivery.done_at is not None and incident else []
    tried = _tried(run) if run.status in FINAL else ()
    steps = _steps(run, incident, delivery, letters, tried)
    over = all(step.state in ("done", "failed") for step in steps)
    return Night(run=run, steps=steps, over=over, incident=incident, delivery=delivery, letters=letters, tried=tried)


def _steps(
    run: Run,
    incident: Incident | None,
    delivery: Delivery | None,
    letters: list[dict[str, Any]] | None,
    tried: tuple[Tried, ...],
) -> tuple[Step, ...]:
    ended, tripped = run.status in FINAL, run.status == "tripped"
    opened_at = incident.opened_at if incident is not None else None
    told_at = delivery.done_at if delivery is not None else None
    found = [
        _step(run, "started", "The run starts", run.started_at, f"{MODEL} under policy {POLICY}: no guard at all"),
        _step(run, "tripped", "It goes in circles until a fuse ends it", run.finished_at, _ended(run)),
        _step(run, "incident", "An incident opens", opened_at, incident.title if incident else ""),
        _step(run, "webhook", "A signed webhook tells of it", told_at, _told(delivery, letters)),
        _step(run, "postmortem", "The postmortem is there", run.finished_at if tried else None, "folded from the log"),
        _step(run, "earlier", "And which policy stops it earlier", run.finished_at if tried else None, _best(tried)),
    ]
    if ended and not tripped:
        # Nothing of the rule that is waited for will come any more.
        bad = {"tripped", "incident", "webhook"}
        found = [_with(one, "failed") if one.name in bad and one.state != "done" else one for one in found]
        found[1] = _with(found[1], "failed")
    if delivery is not None and delivery.state in (Delivery.State.FAILED, Delivery.State.DROPPED):
        found[3] = _with(found[3], "failed")
    first = next((place for place, one in enumerate(found) if one.state == "later"), None)
    if first is not None:
        found[first] = _with(found[first], "now")
    return tuple(found)


def _step(run: Run, name: str, word: str, at: datetime | None, text: str) -> Step:
    if at is None:
        return Step(name=name, word=word, state="later")
    seconds = max(0.0, (at - run.created_at).total_seconds())
    return Step(name=name, word=word, state="done", text=text, seconds=seconds)


def _with(step: Step, state: str) -> Step:
    return Step(name=step.name, word=step.word, state=state, text=step.text, seconds=step.seconds)


def _ended(run: Run) -> str:
    return f"{run.status} by {run.exit_reason} at tool call {run.steps}"


def _told(delivery: Delivery | None, letters: list[dict[str, Any]] | None) -> str:
    if delivery is None or delivery.done_at is None:
        return ""
    if delivery.state != Delivery.State.DELIVERED:
        return f"not delivered: {delivery.why or 'no answer'}"
    good = any(letter.get("verified") for letter in letters or ())
    seen = "the receiver found its signature good" if good else "the receiver does not remember it"
    return f"answered {delivery.code}; {seen}"


def _best(tried: tuple[Tried, ...]) -> str:
    stopping = sorted((one for one in tried if one.row.stop is not None), key=lambda one: _at(one))
    return "; ".join(_where(one) for one in stopping) or "none of those here would have"


def _where(one: Tried) -> str:
    """`strict v1 at step 8`; `default v1 first refuses at step 18 and stops at step 23`."""
    early = one.row.first_refused
    if early is not None and early.step < _at(one):
        return f"{one.name} first refuses at step {early.step} and stops at step {_at(one)}"
    return f"{one.name} stops at step {_at(one)}"


def _at(one: Tried) -> int:
    return one.row.stop.step if one.row.stop else 0


def _tried(run: Run) -> tuple[Tried, ...]:
    try:
        return tuple(sheet_of(document_of(run)).earlier)
    except NotFinished:
        return ()


def _letters(incident: str) -> list[dict[str, Any]] | None:
    try:
        return list(_ask("GET", f"/drill/alerts?incident={incident}")["letters"])
    except (NoDrill, KeyError, TypeError):
        return None


def _address(path: str) -> str:
    return f"{str(settings.DRILL_URL).rstrip('/')}{path}"


def _ask(method: str, path: str, body: Any = None) -> dict[str, Any]:
    if not (settings.EMBEDDED or settings.DRILL_URL_GIVEN):
        raise NoDrill(
            "No drill server is set up here: start one with “python -m agents.drill” and name it in DRILL_URL."
        )
    try:
        with httpx.Client(timeout=_PATIENCE_S, trust_env=False) as client:
            answer = client.request(method, _address(path), json=body)
            answer.raise_for_status()
            found = answer.json() if answer.content else {}
    except (httpx.HTTPError, ValueError) as error:
        logger.info("the drill server at %s did not answer: %s", settings.DRILL_URL, type(error).__name__)
        raise NoDrill(
            f"No drill server answers at {settings.DRILL_URL}. “make run” starts one; so does “python -m agents.drill”."
        ) from error
    return found if isinstance(found, dict) else {}
