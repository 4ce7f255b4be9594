"""The results that several tools give in the same form: cut ones, and those of a dry run."""

from agents.policy.redaction import cut
from agents.ports import ToolOutput
from agents.spec import CallStatus

# Far above what the model gets to read, which the engine cuts once more: here only memory is saved.
TEXT_LIMIT = 100_000


def bounded(text: str, *, whole: bytes | None = None, is_error: bool = False, status: str | None = None) -> ToolOutput:
    """Head and tail of a long text, with the whole beside it."""
    short, was_cut = cut(text, TEXT_LIMIT)
    if was_cut and whole is None:
        whole = text.encode("utf-8", "replace")
    return ToolOutput(text=short, is_error=is_error, whole=whole, status=status)


def would(what: str) -> ToolOutput:
    """What a tool with effects answers in a dry run."""
    return ToolOutput(text=f"Dry run, nothing was done. This call would {what}", status=CallStatus.DRY_RUN.value)
