"""What the log says of one attempt at the model: why it failed, and what it cost, which is never lost."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.errors import ClassifiedError, ModelError, Spent
from agents.messages import Usage
from agents.policy import output_caps
from agents.policy.faults import classify, known, sample_of
from agents.policy.redaction import make_safe
from agents.ports import ChatAnswer

# Without a diagnosis the reason depends on how full the window was.
_BARE = (400, 413)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Fields of `call.retried` and `call.completed`."""

    usage: dict[str, int] | None
    cost_usd: str | None
    cost_source: str
    price_version: str | None = None
    usage_notes: list[str] | None = None

    def fields(self) -> dict[str, Any]:
        return {
            "usage": self.usage,
            "cost_usd": self.cost_usd,
            "cost_source": self.cost_source,
            "price_version": self.price_version,
            "usage_notes": self.usage_notes,
        }


# A known zero.
NOTHING = Cost(usage=None, cost_usd="0", cost_source="none")
UNKNOWN = Cost(usage=None, cost_usd=None, cost_source="unknown")


def of_answer(answer: ChatAnswer) -> Cost:
    return Cost(
        usage=tokens(answer.usage),
        cost_usd=answer.cost_usd,
        cost_source=answer.cost_source,
        price_version=answer.price_version,
        usage_notes=list(answer.usage_notes) or None,
    )


def of_spent(spent: Spent | None, otherwise: Cost) -> Cost:
    """An attempt without an answer; `otherwise` if the wire did not say what it cost."""
    if spent is None:
        return otherwise
    return Cost(
        usage=tokens(spent.usage),
        cost_usd=spent.cost_usd,
        cost_source=spent.cost_source,
        price_version=spent.price_version,
        usage_notes=list(spent.notes) or None,
    )


def of_error(error: ModelError) -> Cost:
    if error.spent is None and error.usage is not None:
        return Cost(usage=tokens(error.usage), cost_usd=None, cost_source="unknown")
    return of_spent(error.spent, NOTHING)


def tokens(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
    }


def judged(error: ModelError, context: dict[str, int], now: datetime) -> ClassifiedError:
    """The judgement of a failure, with what only the engine knows: how full the window was."""
    sample = sample_of(error.wire, context)
    fault = error.fault or known(error.kind, sample, error.message, now)
    if error.fault is not None and error.wire.status in _BARE and context:
        again = classify(sample, now)
        if again.reason == "context_overflow":
            return again
    return fault


def output_cap(error: ModelError, fault: ClassifiedError) -> int | None:
    """The output cap that the provider named, if its refusal was about that."""
    if fault.reason not in ("format_error", "context_overflow"):
        return None
    return output_caps.told(_words(error, fault))


def stated_window(error: ModelError, fault: ClassifiedError) -> int | None:
    """The window that the provider named beside what the messages take of it."""
    return output_caps.window(_words(error, fault))


def _words(error: ModelError, fault: ClassifiedError) -> str:
    return f"{fault.said}\n{error.message}\n{error.wire.body}"


def facts(error: ModelError, fault: ClassifiedError) -> dict[str, Any]:
    """`error` of an event."""
    said: dict[str, Any] = {"reason": fault.reason, "message": make_safe(error.message).text[:2000]}
    if error.wire.status is not None:
        said["status"] = error.wire.status
    evidence = error.wire.transport or error.wire.body
    if evidence:
        said["evidence"] = make_safe(evidence).text[:500]
    return said
