"""The small Protocols through which the loop meets the world; `control` and `testing` implement them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from agents.commands import Command
from agents.events import Draft
from agents.messages import AssistantMessage, Message, Usage
from agents.policy.accounts import Amounts, Ceilings, Grant, Need, Short
from agents.spec import ConcurrencyClass, ModelSpec, Resume, Status


class Clock(Protocol):
    """Time as an argument. `monotonic` in seconds; `sleep` is cancellable."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class EventSink(Protocol):
    """The run's own log. `emit` keeps order and returns at once; awaiting its result waits until all is durable.

    The awaited value is the last `seq`. Raises Fenced when this writer has lost the run.
    """

    def emit(self, *drafts: Draft) -> Awaitable[int]: ...


class LiveText(Protocol):
    """Text while it streams: coalesced, published, never logged. `offset`: characters since the attempt began."""

    def delta(self, call: str, attempt: int, offset: int, text: str) -> None: ...
    def withdrawn(self, call: str, attempt: int) -> None: ...


class Inbox(Protocol):
    """Commands for one run, each handed out once, in order of issue."""

    async def receive(self) -> Command: ...
    async def drain(self) -> Sequence[Command]:
        """All that is waiting now, read from the source of truth; used before a run may finish."""
        ...


class Artifacts(Protocol):
    """Content-addressed store; a reference is `{"sha256": hex, "bytes": n}`."""

    async def put(self, content: bytes) -> Mapping[str, Any]: ...
    async def get(self, sha256: str) -> bytes: ...


class Lease(Protocol):
    """Whether this worker may still act for the run. `held` is a local check, cheap, safe to call from threads."""

    def held(self) -> bool: ...


# --- the model ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request. `parts` are the messages as already serialised by the model's `encode_message`; `tools` likewise.

    `hears_chants`: an answer that says the same again and again is cut off, as a failure with `chant`.
    `no_calls`: the answer is to be text, although tools are named, which some providers want beside a history of calls.
    """

    parts: Sequence[bytes]
    tools: bytes | None
    max_output_tokens: int | None = None
    no_calls: bool = False
    hears_chants: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """A complete answer. `cost_usd` is a decimal string or None; `cost_source` as in `call.completed`.

    `cut` tells that the output cap ended the message, so none of its calls may run. `price_version` names the table
    behind `cost_usd`; `estimated` says that the provider counted nothing and `usage` is an estimate; `usage_notes` say
    what was odd about its count (`cache_exceeds_prompt`, `total_mismatch`, `reasoning_unknown`, ...).
    """

    message: AssistantMessage
    usage: Usage | None
    cost_usd: str | None
    cost_source: str
    finish_reason: str | None
    ttft_ms: float | None
    cut: bool = False
    price_version: str | None = None
    estimated: bool = False
    usage_notes: tuple[str, ...] = ()


class ChatModel(Protocol):
    """One model behind one base URL.

    `ask` streams; `on_text` gets each piece of visible text as it comes. Raises ModelError for a failed attempt;
    passes CancelledError through after closing the socket at once. `errors.spent_by` tells what either had cost.
    A wire that wants the tools named wherever the history holds calls has an attribute `keeps_tools` that is true.
    """

    name: str
    provider: str

    def encode_message(self, message: Message) -> bytes: ...
    def encode_tools(self, tools: Sequence["ToolSpec"]) -> bytes | None: ...
    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A model with a key that may be used now. `spec` is what it was made from; `credential` the key's label."""

    model: ChatModel
    spec: ModelSpec
    credential: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """No key for this model may be used now. `until`: when the first one is back; None when no time will bring it."""

    until: datetime | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """How a key fared in one attempt: `reason` as in the contract's section 5, None after a success.

    `cooldown_s` is how long it shall rest (None: as the pool sees fit), `spent_usd` what the attempt cost, `said` the
    provider's own sentence.
    """

    credential: str | None
    reason: str | None = None
    cooldown_s: float | None = None
    spent_usd: str | None = None
    said: str = ""


class Models(Protocol):
    """The models of one run in order of preference (its own, then its fallbacks) and the keys that go with them.

    `pick` gives a usable one for the model at `place` (0 = the run's own), passing over the keys in `avoid`. Raises
    IndexError past the last fallback. `report` is never awaited for long and never raises.
    """

    async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Picked | Resting: ...
    async def report(self, report: KeyReport) -> None: ...


# --- tools -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a tool is. `parameters` is a JSON Schema object; `paths` names the arguments that hold workspace paths."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    concurrency: ConcurrencyClass = ConcurrencyClass.UNKNOWN
    paths: tuple[str, ...] = ()
    timeout_s: float = 120.0
    resume: Resume = Resume.UNKNOWN
    waits_for_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One file changed by a call; hashes are hex sha256 of the whole content, None where there is no file."""

    path: str
    before_sha256: str | None
    sha256: str | None
    size: int
    state: str
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The result of one call. `text` is what the model reads; `whole` the uncut output if it was cut.

    `heard`: what a guard once read out of the answer that `text` stands for; only a recorded answer has it.
    """

    text: str
    is_error: bool = False
    whole: bytes | None = None
    edits: tuple[Edit, ...] = ()
    status: str | None = None
    heard: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's answer to a question or an approval."""

    text: str
    by: str


class CancelToken(Protocol):
    """For code in threads: `cancelled` turns true when the call must end."""

    @property
    def cancelled(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """What one call's end left behind: processes ended, and any that outlived the kill."""

    processes: int = 0
    left: int = 0


class ToolContext(Protocol):
    """What a running call may use. One per call."""

    run: str
    call: str
    workspace: str
    dry_run: bool
    lease: Lease
    cancel: CancelToken

    async def ask(self, question: str, choices: Sequence[str] | None) -> Answer:
        """Ask a person; the run is `waiting` until the answer comes."""
        ...

    async def spawn(self, request: "SpawnRequest") -> "Child": ...

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Run blocking work off the loop. On cancel the thread gets `cancel` and is abandoned, visibly, if deaf."""
        ...

    def processes_ended(self, report: StopReport) -> None:
        """Told by tools that start processes, after every kill."""
        ...

    environment: Mapping[str, str]


class Tool(Protocol):
    """One tool. `run` gets arguments that were checked against the schema; raises ToolError with a helpful text."""

    @property
    def spec(self) -> ToolSpec: ...
    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """A server of tools came up with these tools, or went down."""

    server: str
    up: bool
    tools: tuple[str, ...] = ()
    why: str = ""


class ToolServers(Protocol):
    """Tools that live outside this process. `connect` takes a bounded time and never raises for a server that is down;
    it and every later change are `told`. `close` ends all of them, `at_once` without good-byes."""

    async def connect(self, told: Callable[[ServerState], None]) -> Sequence[Tool]: ...
    async def close(self, *, at_once: bool) -> StopReport: ...


class Notebook(Protocol):
    """What one agent keeps from run to run."""

    async def keep(self, note: str, *, run: str, call: str) -> bool:
        """Whether the note is new. The same call keeps it once. Raises ToolError if there is no room for it."""
        ...


# --- sub-agents --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """A child to start. `call` is the parent's call that asked; `detached` lets it outlive the parent's scope."""

    parent: str
    call: str
    task: str
    agent: str | None = None
    detached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    run: str
    status: Status
    final: str
    stopped: Mapping[str, Any] = field(default_factory=dict)


class Child(Protocol):
    """A started child. Cancelling `wait` only ends the waiting; `stop` ends the child for good."""

    run: str

    async def wait(self) -> ChildEnd: ...
    async def stop(self) -> ChildEnd | None:
        """Stop it because its parent stops; returns when it has ended, or None when its grace is over."""
        ...


class Spawner(Protocol):
    """Starts children. `spawn` raises SpawnRefused (stopping parent, too many, too deep); `adopt` goes on with one
    that a former worker of this run had started."""

    async def spawn(self, request: SpawnRequest) -> Child: ...
    async def adopt(self, run: str) -> Child: ...


class Ledger(Protocol):
    """What one run's model calls are paid from: its own account, those of the runs above it, its agent's day, its key's
    period, the fleet's day. Shared with all that pay from them too, in whichever process.

    `open` once, before the first call: the limits of the run's own account, and what its log says is spent (for an
    account that is not there yet). `raised`: these are its limits from now on. `reserve` holds all that a call may take
    or nothing, and never waits for others. Every grant is settled once, with what the call came to; `settle` and
    `raised` take effect at once for this run and soon for others, and never raise. `close` when no call is under way.
    """

    def open(self, ceilings: Ceilings, used: Amounts) -> None: ...
    def raised(self, ceilings: Ceilings) -> None: ...
    async def reserve(self, need: Need, *, call: str, attempt: int, credential: str | None) -> Grant | Short: ...
    def settle(self, grant: Grant, spent: Amounts) -> None: ...
    async def close(self) -> None: ...
