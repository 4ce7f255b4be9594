"""Logs: lines for people, or one JSON object a line, with time, level, logger, process and, where known, the run.

Whatever a run's task logs carries the run's id and epoch, however deep in the loop it is said. Secrets are hidden by
the same patterns as in events.
"""

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

import orjson
from django.conf import settings

from agents.policy.redaction import make_safe

# Run and epoch of the task that logs.
_run: ContextVar[tuple[str, int | None] | None] = ContextVar("pilothouse_run", default=None)
# Longer texts are cut: a log line is no place for a result.
LONGEST = 20_000


@contextmanager
def of_run(run: str, epoch: int | None = None) -> Iterator[None]:
    """What is logged within, also by tasks that begin within, is about this run."""
    token = _run.set((run, epoch))
    try:
        yield
    finally:
        _run.reset(token)


def configure(kind: str, process: str = "") -> None:
    """Log to standard error as LOG_FORMAT says. `kind` is web, worker, desk or up; `process` the id on the roster."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(kind, process) if settings.LOG_FORMAT == "json" else Lines(kind))
    handler.addFilter(_bind)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(settings.LOG_LEVEL)
    logging.captureWarnings(True)


def _bind(record: logging.LogRecord) -> bool:
    """Take run and epoch at the moment of logging; what the caller says in `extra` counts before it."""
    bound = _run.get()
    if bound is not None and not hasattr(record, "run"):
        record.run, record.epoch = bound
    return True


class Lines(logging.Formatter):
    """For people. The run follows the logger's name where the sentence does not name it."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"%(asctime)s {kind} %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        text = make_safe(super().format(record)[:LONGEST]).text
        run = getattr(record, "run", None)
        return f"{text} [run {run}]" if run and str(run) not in text else text


class JsonLines(logging.Formatter):
    """`{time, level, logger, process, worker?, run?, epoch?, message, error?}`; `error` is the traceback."""

    def __init__(self, kind: str, process: str) -> None:
        super().__init__()
        self._kind = kind
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")[:26] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._kind,
            "pid": record.process,
        }
        if self._process:
            told["worker" if self._kind == "worker" else "id"] = self._process
        for name in ("run", "epoch"):
            if (value := getattr(record, name, None)) is not None:
                told[name] = value
        told["message"] = make_safe(record.getMessage()[:LONGEST]).text
        if record.exc_info and record.exc_info[0] is not None:
            text = "".join(traceback.format_exception(*record.exc_info))
            told["error"] = make_safe(text[-LONGEST:]).text
        return orjson.dumps(told, default=str).decode()
