"""The word, shape and colour of a run's state, and which verbs it allows."""

from dataclasses import dataclass
from datetime import datetime

from agents.spec import Status
from control.runs.models import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`icon` is a shape of our set, `colour` the name of a token; `since` tells when it began, if that matters."""

    word: str
    icon: str
    colour: str
    since: datetime | None = None


WORDS: dict[str, State] = {
    "queued": State(word="Queued", icon="queued", colour="queued"),
    "running": State(word="Running", icon="running", colour="running"),
    "waiting": State(word="Waiting", icon="waiting", colour="waiting"),
    "stopping": State(word="Stopping", icon="stopping", colour="stopping"),
    "completed": State(word="Completed", icon="check", colour="completed"),
    "exhausted": State(word="Out of turns", icon="hourglass", colour="exhausted"),
    "interrupted": State(word="Interrupted", icon="square", colour="interrupted"),
    "tripped": State(word="Tripped", icon="flash", colour="tripped"),
    "failed": State(word="Failed", icon="cross", colour="failed"),
    "lost": State(word="Lost", icon="question", colour="lost"),
}
WAITING = {"question": "Asks you", "approval": "Approve?", "pause": "Paused", "quota": "Waiting for quota"}


def state_of(run: Run, now: datetime) -> State:
    """What to call the run's state. A held run whose lease lapsed is out of contact, neither running nor failed."""
    status = Status(run.status)
    if not status.final and run.lease_until is not None and run.lease_until < now:
        return State(word="No contact", icon="question", colour="lost", since=run.lease_until)
    if status is Status.WAITING:
        word = WAITING.get(run.waiting_for or "", "Waiting")
        return State(word=word, icon="pause" if run.waiting_for == "pause" else "waiting", colour="waiting")
    return WORDS[status.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Whether a verb can work now; `why` says why not."""

    name: str
    why: str = ""

    @property
    def able(self) -> bool:
        return not self.why


def verbs(run: Run) -> dict[str, Verb]:
    """Verbs that cannot work stay on the page, disabled, with the reason."""
    status = Status(run.status)
    over = f"This run is {WORDS[run.status].word.lower()}; there is nothing left to act on." if status.final else ""
    stopping = "The run is stopping." if status is Status.STOPPING else ""
    paused = run.waiting_for == "pause"
    return {
        "interrupt": Verb(name="interrupt", why=over),
        "steer": Verb(name="steer", why=over or stopping),
        "pause": Verb(name="pause", why=over or stopping or ("The run is paused." if paused else "")),
        "unpause": Verb(name="unpause", why=over or stopping or ("" if paused else "The run is not paused.")),
    }


RUNGS = ("observe", "steer", "block", "escalate", "stop")


def pips(rung: str | None) -> list[tuple[str, bool]]:
    """The ladder's rungs and which of them were reached."""
    reached = RUNGS.index(rung) if rung in RUNGS else -1
    return [(name, index <= reached) for index, name in enumerate(RUNGS)]
