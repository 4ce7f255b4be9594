"""Rebuild equals live: any log, folded again, gives the rows that the appends wrote."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import kinds
from agents.events import Draft, draft
from agents.ids import new_id
from control.runs import folds, inbox, log, projections
from control.runs.models import Call, Command, Receipt, Run, Verdict
from tests.control.records import batch, make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


def rows(run: Run) -> dict[str, Any]:
    return {
        "run": Run.objects.values().get(pk=run.pk),
        "calls": list(Call.objects.filter(run_id=run.pk).order_by("id").values()),
        "verdicts": list(Verdict.objects.filter(run_id=run.pk).order_by("seq").values()),
        "receipts": list(Receipt.objects.filter(run_id=run.pk).order_by("command_id").values()),
        "commands": list(Command.objects.filter(run_id=run.pk).order_by("id").values()),
    }


def compare(run: Run) -> dict[str, Any]:
    live = rows(run)
    projections.rebuild(run.pk)
    again = rows(run)
    for name, before in live.items():
        assert again[name] == before, name
    return live


# --- any log ---------------------------------------------------------------------------------------------------------

_CALLS = [new_id() for _ in range(4)]
_text = st.sampled_from(["", "a", "pytest -q", "naïve ☃", "x" * 700, "line\nline"])
_money = st.sampled_from([None, "0.1", "0.000000001", "12.5", "0.0000000004", "3"])
_source = st.sampled_from(["reported", "price_table", "none", "unknown", None])
_usage = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"input": st.integers(0, 10**6), "output": st.integers(0, 9999), "cache_read": st.integers(0, 99)}
    ),
)
_error = st.fixed_dictionaries(
    {"reason": st.sampled_from(["rate_limit", "timeout"]), "message": _text}, optional={"status": st.integers(400, 599)}
)
_args = st.sampled_from([None, "{}", '{"command":"pytest -q"}', "not json", '{"n":1,"path":"a/b"}'])
_operation = st.sampled_from(["chat", "execute_tool", "invoke_agent"])
_calls = st.sampled_from([*_CALLS, None])
_turns = st.one_of(st.none(), st.integers(1, 9))

# A command is of one kind for ever: what the log says of it agrees with its row.
_COMMANDS = ("interrupt", "steer", "pause", "unpause", "answer", "raise", "drain")

_BODIES = st.one_of(
    st.just(kinds.TurnStarted()),
    st.just(kinds.TurnCompleted()),
    st.builds(kinds.CallStarted, operation=_operation, name=_text, model=st.sampled_from([None, "tour"]), args=_args),
    st.builds(
        kinds.CallRetried, error=_error, action=st.just("retry"), wait_s=st.floats(0, 90), until=st.just("t"),
        attempt=st.integers(1, 5), usage=_usage, cost_usd=_money, cost_source=_source,
    ),
    st.builds(
        kinds.CallCompleted, operation=_operation, name=_text, args=_args, usage=_usage, cost_usd=_money,
        status=st.sampled_from(["ok", "error", "timeout", "blocked", "effect_unknown"]), cost_source=_source,
        tool_calls=st.sampled_from([None, [{"call": "c", "wire_id": "w", "name": "n", "args": "{}"}] * 2]),
    ),
    st.builds(
        kinds.RunWaiting, reason=st.sampled_from(["question", "approval", "pause", "quota"]), call=_calls, text=_text,
    ),
    st.just(kinds.RunContinued()),
    st.builds(kinds.RunStopping, command=st.sampled_from([None, "cmd-0"]), by=st.just("ann")),
    st.builds(
        kinds.VerdictIssued, detector=_text, rung=st.sampled_from(["observe", "steer", "block", "escalate", "stop"]),
        rule=st.just("R1"), fingerprint=_text, step=st.integers(0, 9), count=st.integers(0, 9), evidence=st.just([1]),
        wasted_tokens=st.integers(0, 9), explanation=_text, shadow=st.booleans(), wasted_usd=_money,
    ),
    st.sampled_from(
        [kinds.CommandReceived(command=f"cmd-{n}", command_kind=kind, by="ann") for n, kind in enumerate(_COMMANDS)]
    ),
    st.builds(kinds.SteerInjected, command=st.just("cmd-1"), note=_text, by=st.just("ann")),
    st.builds(kinds.SteerRefused, command=st.just("cmd-2"), code=st.just("no_turn_left")),
    st.builds(kinds.FuseRaised, limits=st.just({"max_turns": "9"}), by=st.just("ann"), reason=_text),
    st.builds(
        kinds.ContextCompressed, before_tokens=st.integers(0, 9), after_tokens=st.just(1), summary=_text,
        from_seq=st.just(1), to_seq=st.just(2),
    ),
    st.just(kinds.Unknown(name="future.thing", raw={"x": 1})),
)  # fmt: skip
_ENDS = st.one_of(
    st.none(),
    st.builds(kinds.RunCompleted, final=_text),
    st.builds(kinds.RunExhausted, limit=st.just("max_turns"), final=_text, final_by=st.just("model")),
    st.builds(
        kinds.RunInterrupted, command=st.sampled_from([None, "cmd-0"]), reason=_text,
        by=st.sampled_from(["ann", "parent", "shutdown"]),
        stopped=st.fixed_dictionaries({"seconds": st.floats(0, 9), "verified": st.booleans()}),
    ),
    st.builds(kinds.RunTripped, step=st.integers(0, 9), fuse=st.sampled_from([None, "max_steps"]), rule=st.just("R2")),
    st.builds(kinds.RunFailedEvent, error=_error),
    st.just(kinds.RunLost(worker="w", last_seen=None)),
)  # fmt: skip


@st.composite
def logs(pick: st.DrawFn) -> tuple[list[list[tuple[kinds.Body, int | None, str | None]]], list[bool]]:
    """Batches of events, ended or not, and before which of them the writer forgets what it kept."""
    moments = st.tuples(_BODIES, _turns, _calls)
    batches = pick(st.lists(st.lists(moments, min_size=1, max_size=6), max_size=6))
    end = pick(_ENDS)
    if end is not None:
        batches.append([(end, 1, None)])
        late = st.builds(kinds.CallLate, call=st.sampled_from(_CALLS), status=st.just("ok"))
        batches += [[(body, None, body.call)] for body in pick(st.lists(late, max_size=2))]
    return batches, pick(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))


def _commands(run: Run) -> None:
    from control.runs.clock import database_now

    for number, kind in enumerate(_COMMANDS):
        command = f"cmd-{number}"
        Command.objects.filter(pk=command).delete()
        Receipt.objects.filter(command_id=command).delete()
        Command.objects.create(pk=command, run_id=run.pk, kind=kind, by="ann", issued_at=database_now())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=logs())
def test_any_log_folded_again_gives_the_rows_that_were_written(made: Any) -> None:
    batches, forget = made
    Call.objects.all().delete()
    run = make_run()
    _commands(run)
    for events, forgets in zip(batches, forget, strict=True):
        if forgets:
            folds._kept.clear()
        items: list[Draft] = [draft(body, at=run.created_at, turn=turn, call=call) for body, turn, call in events]
        assert not log.append([batch(run, *items)])[0].fenced
    compare(run)


# --- cases that a random log seldom meets -------------------------------------------------------------------------


def test_money_is_added_exactly_and_unknown_cost_is_told_not_counted() -> None:
    run = make_run()
    for cost, source in (("0.1", "reported"), ("0.2", "price_table"), (None, "unknown"), (None, "none")):
        write(run, kinds.CallCompleted(operation="chat", name="m", status="ok", cost_usd=cost, cost_source=source))
    live = compare(run)["run"]
    assert (str(live["cost_usd"]), live["cost_unknown"]) == ("0.300000000", True)


def test_calls_left_open_at_the_end_are_closed_in_the_rows() -> None:
    run = make_run()
    write(run, kinds.CallStarted(operation="execute_tool", name="run_command"), turn=1, call=_CALLS[0])
    write(run, kinds.RunLost(worker="w", last_seen=None))
    assert [call["status"] for call in compare(run)["calls"]] == ["effect_unknown"]


def test_receipts_of_a_run_that_was_ended_while_queued_survive_a_rebuild() -> None:
    from agents.commands import CommandKind

    run = make_run(held=False)
    inbox.issue(run_id=run.pk, kind=CommandKind.STEER, by="ann", args={"note": "n"})
    inbox.issue(run_id=run.pk, kind=CommandKind.INTERRUPT, by="ann", bulk="b")
    live = compare(run)
    assert [r["state"] for r in live["receipts"]] == ["refused", "done"]
    assert live["run"]["exit_reason"] == "kill_switch"


def test_a_claim_that_has_not_written_yet_survives_a_rebuild() -> None:
    run = make_run()
    assert compare(run)["run"]["status"] == "running"


def test_a_resumed_run_keeps_its_sums_and_its_open_calls() -> None:
    run = make_run()
    write(run, kinds.CallStarted(operation="execute_tool", name="a", args='{"path":"x"}'), turn=1, call=_CALLS[0])
    from agents.spec import Status

    log.append_as_owner(run.pk, expect=[Status.RUNNING], epoch=1, body=kinds.RunRequeued(epoch=2, why="lost"))
    run.refresh_from_db()
    write(run, kinds.CallStarted(operation="execute_tool", name="a", args='{"path":"x"}'), turn=1, call=_CALLS[0])
    write(run, kinds.CallCompleted(operation="execute_tool", name="a", status="ok"), turn=1, call=_CALLS[0])
    live = compare(run)
    assert len(live["calls"]) == 1 and live["calls"][0]["started_seq"] == 4
