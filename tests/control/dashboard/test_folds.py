"""The view as a fold: what changed is found, nothing is doubled, and every part has a template of its own."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from agents import kinds
from agents.events import Draft, draft, encode
from agents.ids import new_id
from agents.kinds import KINDS, BatchPlanned, CallCompleted, CallStarted, TurnStarted
from control.dashboard.document import Document
from control.dashboard.folds import RunFold
from control.dashboard.render import node_html

NOW = datetime(2026, 1, 31, 1, 14, tzinfo=UTC)


def fold_of(*drafts: Draft) -> RunFold:
    fold = RunFold()
    fold.feed(encode(item, run="r", root="r", seq=seq, ts=NOW) for seq, item in enumerate(drafts, 1))
    return fold


def said(body: Any, *, turn: int | None = 1, call: str | None = None) -> Draft:
    return draft(body, at=NOW, turn=turn, call=call)


def tool(call: str, status: str = "ok") -> list[Draft]:
    done = CallCompleted(operation="execute_tool", name="read_file", status=status, result="x", cost_source="none")
    return [said(CallStarted(operation="execute_tool", name="read_file"), call=call), said(done, call=call)]


def test_every_kind_has_a_part_of_its_own():
    folder = Path(settings.BASE_DIR) / "templates" / "runs" / "events"
    shown_elsewhere = {"turn.completed"}
    for kind in set(KINDS) - shown_elsewhere:
        assert (folder / f"_{kind.replace('.', '_')}.html").exists(), kind


def test_a_later_event_patches_the_earlier_row():
    call = new_id()
    fold = fold_of(*tool(call))
    assert fold.document.nodes[f"call-{call}"].context["state"] == "ok"
    changes = fold.document.since(1)
    assert [(change.op, change.node.id) for change in changes] == [
        ("replace", "outline-1"),
        ("replace", f"call-{call}"),
    ]


def test_what_lies_in_something_new_comes_with_it():
    fold = fold_of(said(TurnStarted()), *tool(new_id()))
    assert [change.node.id for change in fold.document.since(0)] == ["turn-1", "outline-1"]


def test_nothing_changed_after_the_newest_event():
    fold = fold_of(said(TurnStarted()), *tool(new_id()))
    assert fold.document.since(3) == []


def test_an_event_that_comes_twice_is_folded_once():
    drafts = [said(TurnStarted()), *tool(new_id())]
    fold = fold_of(*drafts)
    again = [encode(item, run="r", root="r", seq=seq, ts=NOW) for seq, item in enumerate(drafts, 1)]
    fold.feed(again)
    assert fold.seq == 3 and fold.turns[1].calls and len(fold.turns[1].calls) == 1


def test_new_siblings_land_in_order():
    fold = fold_of(*(said(TurnStarted(), turn=turn) for turn in range(1, 6)))
    ids = [change.node.id for change in fold.document.since(2) if change.op == "append"]
    assert ids == ["turn-3", "turn-4", "turn-5"]
    assert [node.id for node in fold.document.walk("outline")] == [f"outline-{turn}" for turn in (5, 4, 3, 2, 1)]


@pytest.mark.django_db
def test_a_cached_part_is_made_anew_when_something_in_it_changes():
    call = new_id()
    fold = fold_of(said(TurnStarted()), said(CallStarted(operation="execute_tool", name="read_file"), call=call))
    card = fold.document.nodes["turn-1"]
    before = node_html(fold.document, card)
    fold.feed([encode(tool(call)[1], run="r", root="r", seq=3, ts=NOW)])
    after = node_html(fold.document, card)
    assert 'data-state="running"' in before and 'data-state="running"' not in after


def test_an_end_closes_what_was_open_and_what_never_started():
    ran, never = new_id(), new_id()
    fold = fold_of(
        said(TurnStarted()),
        said(BatchPlanned(groups=[[ran], [never]], why="w")),
        said(CallStarted(operation="execute_tool", name="run_command"), call=ran),
        said(kinds.RunLost(worker="w", last_seen=None), turn=None),
    )
    assert fold.document.nodes[f"call-{ran}"].context["state"] == "closed"
    assert fold.document.nodes[f"call-{never}"].context["state"] == "not_started"
    assert fold.document.nodes["turn-1-head"].context["state"] == "done"


def test_evidence_leads_to_the_row_that_tells_it():
    call = new_id()
    verdict = kinds.VerdictIssued(
        detector="d", rung="observe", rule="r", fingerprint="f", step=1, count=1, evidence=[2, 3], wasted_tokens=0,
        explanation="e", shadow=False,
    )  # fmt: skip
    fold = fold_of(said(TurnStarted()), *tool(call), said(verdict, call=call))
    assert fold.document.nodes["event-4"].context["links"] == [(2, f"call-{call}"), (3, f"call-{call}")]


def test_bars_lie_in_the_time_of_their_own_group():
    first, second = new_id(), new_id()
    start = CallStarted(operation="execute_tool", name="read_file")
    done = CallCompleted(operation="execute_tool", name="read_file", status="ok", cost_source="none")

    def at(body: Any, call: str, second: int) -> Draft:
        return draft(body, at=NOW.replace(second=second), turn=1, call=call)

    fold = fold_of(
        said(BatchPlanned(groups=[[first, second]], why="w")),
        at(start, first, 0), at(start, second, 5), at(done, first, 5), at(done, second, 10),
    )  # fmt: skip
    assert fold.document.nodes[f"call-{first}"].context["bar"] == (0.0, 50.0)
    assert fold.document.nodes[f"call-{second}"].context["bar"] == (50.0, 50.0)


def test_a_document_knows_its_differences_by_number():
    document = Document("root")
    document.put("a", "root", "p", 1, slots=("in-a",))
    document.put("b", "in-a", "p", 2)
    document.put("c", "root", "p", 3)
    assert [(c.op, c.target) for c in document.since(1)] == [("append", "in-a"), ("append", "root")]
    document.change("a", 4)
    assert [(c.op, c.target) for c in document.since(1)] == [("replace", "a"), ("append", "root")]


@pytest.mark.django_db
def test_parts_name_themselves_by_the_id_that_patches_use():
    call = new_id()
    fold = fold_of(said(TurnStarted()), *tool(call), said(kinds.RunCompleted(final="x"), turn=None))
    for id, node in fold.document.nodes.items():
        html = node_html(fold.document, node)
        assert re.match(rf'<\w+[^>]* id="{re.escape(id)}"', html), (id, html[:120])
