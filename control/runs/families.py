"""The families of `/metrics` that are counted from the logs: labels, help and, for histograms, bounds in seconds."""

from dataclasses import dataclass

PREFIX = "pilothouse_"
# Of a family at most this many sets of labels; what comes later is told under `other`.
MOST_LABELS = 100
OTHER = "other"

_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_MODEL = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_STOP = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
_QUEUE = (0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """`free` are the labels whose values come from outside and are therefore bounded; empty `bounds`: a counter."""

    help: str
    labels: tuple[str, ...] = ()
    free: frozenset[str] = frozenset()
    bounds: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        return "histogram" if self.bounds else "counter"


def _family(text: str, *labels: str, free: tuple[str, ...] = (), bounds: tuple[float, ...] = ()) -> Family:
    return Family(help=text, labels=labels, free=frozenset(free), bounds=bounds)


_MONEY = ("model", "credential")

FAMILIES: dict[str, Family] = {
    "events_appended_total": _family("Events in the logs."),
    "runs_ended_total": _family("Runs that ended, by final status, without replays of recorded answers.", "status"),
    "run_failures_total": _family("Failed runs, by the reason of the error.", "reason", free=("reason",)),
    "queue_seconds": _family("Time in the queue, from queued or queued again to started.", bounds=_QUEUE),
    "turn_seconds": _family("Turns, from the question to the last answer of a tool.", bounds=_MODEL),
    "model_call_seconds": _family("Model calls with all their attempts.", "model", free=("model",), bounds=_MODEL),
    "model_first_token_seconds": _family("Request to first text.", "model", free=("model",), bounds=_MODEL),
    "model_calls_total": _family("Model calls, by how they ended.", "model", "status", free=("model",)),
    "tool_seconds": _family("Tool calls that began.", "tool", free=("tool",), bounds=_QUICK),
    "tool_calls_total": _family("Tool calls, by how they ended.", "tool", "status", free=("tool",)),
    "stop_seconds": _family("Interrupts, from the request to the end of a run.", bounds=_STOP),
    "stops_total": _family("Interrupted runs; verified: no socket and no process was left.", "verified"),
    "guard_verdicts_total": _family(
        "Verdicts on runs; shadow ones are only told.", "rung", "rule", "shadow", free=("rule",)
    ),
    "provider_errors_total": _family(
        "Failed attempts at a model, also those that another attempt made good.",
        "provider",
        "reason",
        free=("provider", "reason"),
    ),
    "spend_usd_total": _family("Known cost of model calls in US dollars.", *_MONEY, free=_MONEY),
    "unpriced_attempts_total": _family("Attempts at a model whose cost is not known.", *_MONEY, free=_MONEY),
    "tokens_total": _family("Tokens of model calls.", *_MONEY, "direction", free=_MONEY),
}
