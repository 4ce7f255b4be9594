"""The shapes that the API takes: strict about types, closed to unknown fields: a typo is told, not ignored."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator


def _clean(text: str) -> str:
    """Text that every database stores as it is."""
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("it holds a NUL or half a surrogate pair; leave these characters out")
    return text


def _clean_value(value: Any) -> Any:
    """JSON of any depth, every text and key of it storable."""
    if isinstance(value, str):
        _clean(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _clean(key)
            _clean_value(item)
    elif isinstance(value, list):
        for item in value:
            _clean_value(item)
    return value


def _money(value: Any) -> Any:
    """Decimal from a string or a number; a float goes through its shortest text, so 0.1 stays 0.1."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError('give the amount as a decimal string, e.g. "2.50"')
    try:
        return Decimal(str(value))
    except ArithmeticError as error:
        raise ValueError('give the amount as a decimal string, e.g. "2.50"') from error


def _not_too_long(text: str) -> str:
    # A `max_length` of the field would make pydantic refuse half a surrogate pair, which the run is to mark instead.
    if len(text) > LONGEST_NOTE:
        raise ValueError(f"it has {len(text)} characters; at most {LONGEST_NOTE} are taken")
    return text


LONGEST_NOTE = 100_000
Spoken = Annotated[str, AfterValidator(_not_too_long)]
Clean = Annotated[str, AfterValidator(_clean)]
Plain = Annotated[dict[str, Any], AfterValidator(_clean_value)]
Name = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_clean)]
Reason = Annotated[str, Field(max_length=2000), AfterValidator(_clean)]
Given = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_clean)]
Money = Annotated[Decimal, BeforeValidator(_money), Field(ge=0, allow_inf_nan=False, max_digits=18, decimal_places=9)]
Count = Annotated[int, Field(gt=0, le=2_000_000_000)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


class Body(Schema):
    model_config = ConfigDict(strict=True, extra="forbid")


class LimitsIn(Body):
    max_turns: Count | None = None
    max_steps: Count | None = None
    max_tokens: Count | None = None
    max_cost: Money | None = None
    max_seconds: Seconds | None = None

    def given(self) -> dict[str, str]:
        """The limits that were set, each as a decimal string."""
        return {name: format(Decimal(str(value)), "f") for name, value in self if value is not None}


class AgentLimitsIn(LimitsIn):
    """Of each run, of all runs of the agent on one day (UTC), and how many of them may be at work at once."""

    max_cost_per_day: Money | None = None
    max_tokens_per_day: Annotated[int, Field(gt=0, le=10**15)] | None = None
    max_running: Annotated[int, Field(gt=0, le=1_000_000)] | None = None


class StartIn(Body):
    agent: Clean
    task: str
    model: Clean | None = None
    base_url: Clean | None = None
    credential: Clean | None = None
    policy: Clean | None = None
    limits: LimitsIn | None = None
    workspace: Clean | None = None
    branch: Clean | None = None
    dry_run: bool = False
    labels: dict[Name, Annotated[Clean, Field(max_length=200)]] = {}
    project: Name | None = None
    priority: Annotated[int, Field(ge=-100, le=100, description="the higher, the sooner it leaves the queue")] = 0


class InterruptIn(Body):
    reason: Reason | None = None
    scope: Literal["run", "subtree"] = "subtree"


class SteerIn(Body):
    note: Spoken


class PauseIn(Body):
    when: Literal["after_batch", "before_call"] = "after_batch"
    reason: Reason | None = None


class UnpauseIn(Body):
    reason: Reason | None = None


class AnswerIn(Body):
    call: Clean
    text: Spoken | None = None
    decision: Literal["approve", "deny", "edit"] | None = None
    args: Plain | None = None
    reason: Reason | None = None


class RaiseIn(Body):
    limits: LimitsIn
    reason: Given


class ForkIn(Body):
    """Without `turn` from the last one; with 0 from the task alone."""

    turn: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    note: Spoken | None = None


class FilterIn(Body):
    """Which runs. Fields are joined by *and*; an empty filter is refused, `{"all": true}` means every run."""

    all: bool = False
    ids: Annotated[list[Clean], Field(max_length=1000)] | None = None
    status: Clean | None = None
    agent: Clean | None = None
    label: Clean | None = None
    project: Clean | None = None
    q: Annotated[Clean, Field(max_length=500)] | None = None


class BulkIn(Body):
    filter: FilterIn
    reason: Given
    dry_run: bool = False
    block_new_starts: bool = False


class SteerManyIn(Body):
    filter: FilterIn
    note: Spoken
    dry_run: bool = False


class LiftIn(Body):
    reason: Given


class FallbackIn(Body):
    """A model to go on with when those before it give out. Without an address it is at the run's own."""

    model: Annotated[Clean, Field(min_length=1, max_length=200)]
    base_url: Annotated[Clean, Field(max_length=500)] = ""
    credential: Annotated[Clean, Field(max_length=100)] = ""
    provider: Annotated[Clean, Field(max_length=50)] = ""

    def given(self) -> dict[str, str]:
        return {name: value for name, value in self if value}


class AgentIn(Body):
    """One version of an agent. `version`, if given, must be the current one: it guards against lost updates."""

    prompt: Annotated[Clean, Field(min_length=1, max_length=200_000)]
    tools: Annotated[list[Name], Field(max_length=100)] = []
    model: Annotated[Clean, Field(max_length=200)] = ""
    base_url: Annotated[Clean, Field(max_length=500)] = ""
    credential: Annotated[Clean, Field(max_length=100)] = ""
    fallbacks: Annotated[list[FallbackIn], Field(max_length=10)] = []
    policy: Name = "default"
    limits: AgentLimitsIn = AgentLimitsIn()
    delegates_to: Annotated[list[Name], Field(max_length=100)] = []
    mcp_servers: Annotated[list[Plain], Field(max_length=16)] = []
    version: int | None = None


class NoteIn(Body):
    text: Spoken


class NoteChangeIn(Body):
    """What is left out stays as it is. `version`, if given, must be the current one."""

    text: Spoken | None = None
    disabled: bool | None = None
    version: int | None = None


class PolicyIn(Body):
    """One version of a policy: its fuses and rules as data (`body`) or as the text of its TOML (`toml`), not both.

    `version`, if given, must be the current one: it guards against lost updates.
    """

    body: Plain | None = None
    toml: Annotated[Clean, Field(max_length=200_000)] | None = None
    reason: Annotated[Clean, Field(max_length=500)] = ""
    version: int | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "PolicyIn":
        if (self.body is None) == (self.toml is None):
            raise ValueError("give the policy as `body` (data) or as `toml` (text), one of both")
        return self
