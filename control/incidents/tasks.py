"""The desk's Celery task: judge one piece of a backtest. The database decides who has it, as with runs."""

from control.celery import app
from control.incidents.backtest import work

# The process that judges; one that is no `manage.py judge` has none, and gives nothing back.
_owner: str | None = None


def judge_as(owner: str | None) -> None:
    global _owner
    _owner = owner


@app.task(name="control.incidents.tasks.judge_piece", ignore_result=True)  # type: ignore[untyped-decorator]
def judge_piece(piece_id: str) -> None:
    """A copy that comes twice finds the piece taken and does nothing."""
    work.judge(piece_id, _owner)
