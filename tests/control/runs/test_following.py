"""Readers that follow every log: many runs with a little news, and one with a lot, each in its own order."""

from types import SimpleNamespace

import pytest
from django.db import transaction

from agents import kinds
from agents.events import decode
from control.runs import following, log
from control.runs.models import Run
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db(transaction=True)]


def grown(turns: int) -> Run:
    run = make_run()
    for turn in range(1, turns + 1):
        write(run, kinds.TurnStarted(), kinds.TurnCompleted(), turn=turn)
    return run


def test_what_is_read_for_many_runs_at_once_is_what_each_log_holds() -> None:
    runs = [grown(number % 4) for number in range(120)] + [grown(80)]
    behind = {one.run: one for one in following.behind("a", 1000)}
    wanted = [(behind[run.pk], SimpleNamespace(seq=number % 3)) for number, run in enumerate(runs) if run.pk in behind]
    assert len(wanted) > 60, "several statements"
    assert max(one.last_seq for one, _ in wanted) > 100, "one that is read alone"
    logs = [[decode(body) for body in log.read_after(one.run, seen.seq, 1000)] for one, seen in wanted]
    assert [list(events) for _, _, events in following.read(wanted)] == logs
    started = [[event for event in events if event.kind == "turn.started"] for events in logs]
    assert [list(events) for _, _, events in following.read(wanted, {"turn.started"})] == started
    assert list(following.read([])) == []


def test_cursors_move_for_all_of_them_or_for_none() -> None:
    for _ in range(3):
        grown(1)
    first = following.behind("a", 10)
    assert len(first) == 3
    # As if another desk had been faster with one: once when nobody had seen it yet, once with a cursor.
    assert following.advance("a", [(first[1], first[1].last_seq - 1)])
    with transaction.atomic():
        assert not following.advance("a", [(one, one.last_seq) for one in first])
        transaction.set_rollback(True)
    second = following.behind("a", 10)
    assert {one.run for one in second} == {one.run for one in first}
    assert following.advance("a", [(one, one.last_seq) for one in second if one.seen])
    with transaction.atomic():
        assert not following.advance("a", [(one, one.last_seq) for one in second])
        transaction.set_rollback(True)
    third = following.behind("a", 10)
    assert [one.run for one in third] == sorted({first[0].run, first[2].run})
    assert following.advance("a", [(one, one.last_seq) for one in third])
    assert following.behind("a", 10) == []
