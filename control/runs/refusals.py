"""Why a command or a start cannot be taken."""

from typing import Any


class NotFound(Exception):
    def __init__(self, what: str) -> None:
        super().__init__(f"There is no run or command {what}.")
        self.what = what


class RunFinished(Exception):
    """The run has ended; `code` is what receipts and answers carry."""

    code = "run_finished"

    def __init__(self, run: str) -> None:
        super().__init__(f"Run {run} has ended; it takes no more commands. Start a new run.")
        self.run = run


class StartRefused(Exception):
    """A run cannot start. `code` is stable, `message` says what to do next, `status` is the HTTP status."""

    def __init__(self, code: str, message: str, *, detail: dict[str, Any] | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail or {}
        self.status = status
