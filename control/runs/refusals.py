"""Why a command cannot be taken: the run is unknown, or it has ended."""


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
