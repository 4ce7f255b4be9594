"""Forks: a new run with the history of an ended one, its files, and fuses that start fresh."""

import subprocess
from pathlib import Path

import pytest

from agents.engine.transcript import Transcript
from agents.events import decode
from agents.kinds import CallCompleted, CallStarted, RunCompleted, RunForked, RunInterrupted, TurnStarted
from agents.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agents.spec import WorkspaceKind
from control.accounts.models import AuditEntry
from control.runs import forks, histories, log, projections, specs, starts, workspaces
from control.runs.models import Block, Command, Run
from control.runs.refusals import StartRefused
from tests.control.api.callers import UNKNOWN, Caller, caller
from tests.control.records import write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
TASK = "Map the harbour"


@pytest.fixture(autouse=True)
def _drill(settings) -> None:
    settings.DRILL_URL_GIVEN = True


def git(path: str | Path, *words: str) -> str:
    told = subprocess.run(["git", "-C", str(path), *words], capture_output=True, check=True, text=True)
    return told.stdout.strip()


def repository(path: Path) -> Path:
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "user.name", "a")
    git(path, "config", "user.email", "a@b.c")
    commit(path, "first")
    return path


def commit(path: Path, name: str) -> str:
    (path / name).write_text(name)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", name)
    return git(path, "rev-parse", "HEAD")


def started(**given: object) -> Run:
    """A run at work. A fresh workspace is made, as its worker would."""
    run = starts.start(starts.StartRequest(agent="default", task=TASK, **given), by="ann")
    Run.objects.filter(pk=run.pk).update(epoch=1, status="running", worker="w-1")
    run.refresh_from_db()
    place = specs.of(run).workspace
    if place is not None and place.kind is WorkspaceKind.FRESH:
        repository(Path(place.path))
    return run


def turn(run: Run, number: int, text: str = "", *, tool: str = "") -> None:
    """One answer of the model and, with `tool`, one call with its result."""
    call = f"c{number}"
    asked = [{"call": call, "wire_id": f"w{number}", "name": tool, "args": "{}"}] if tool else None
    usage = {"input": 1000, "output": 100}
    write(run, TurnStarted(), turn=number)
    chat = {"operation": "chat", "name": "m", "usage": usage, "cost_usd": "1.5", "cost_source": "reported"}
    opaque = {"reasoning_content": "hm"}
    write(
        run,
        CallCompleted(status="ok", text=text, tool_calls=asked, opaque=opaque, origin="openai", **chat),
        turn=number,
        call=f"m{number}",
    )
    if tool:
        write(run, CallStarted(operation="execute_tool", name=tool), turn=number, call=call)
        write(
            run,
            CallCompleted(operation="execute_tool", name=tool, status="ok", result=f"result {number}"),
            turn=number,
            call=call,
        )


def ended(run: Run) -> Run:
    write(run, RunCompleted(final="The harbour is mapped."))
    run.refresh_from_db()
    return run


def two_turns() -> Run:
    run = started()
    turn(run, 1, "I look.", tool="list_files")
    turn(run, 2, "The harbour is mapped.")
    return ended(run)


def messages(run: Run) -> list[Message]:
    """Of the new log alone."""
    transcript = Transcript()
    for body in log.read_after(run.pk, 0, 1000):
        event = decode(body)
        transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at, seq=event.seq)
    assert (transcript.turn, transcript.steps, transcript.tokens, transcript.cost) == (0, 0, 0, None)
    return transcript.messages


def test_the_new_log_alone_holds_the_history_and_the_note_is_the_next_word():
    old = two_turns()
    made = forks.fork(old.pk, by="bob", note="Now the docks too.").run
    assert [type(message) for message in messages(made)] == [
        UserMessage,
        AssistantMessage,
        ToolMessage,
        AssistantMessage,
        UserMessage,
    ]
    task, looked, result, answer, note = messages(made)
    assert (task.text, result.text, answer.text) == (TASK, "result 1", "The harbour is mapped.")
    assert isinstance(looked, AssistantMessage) and looked.opaque == {"reasoning_content": "hm"}
    assert "Now the docks too." in note.text
    old_rows = Run.objects.filter(pk=old.pk)
    old_rows.delete()
    assert len(messages(made)) == 5, "nothing of the old run is needed"


def test_a_fork_counts_nothing_of_what_the_old_run_used_and_rebuilds_the_same():
    old = two_turns()
    assert (old.turns, old.steps, old.input_tokens) == (2, 1, 2000)
    made = forks.fork(old.pk, by="bob").run
    made.refresh_from_db()
    figures = (made.status, made.turns, made.steps, made.input_tokens, made.cost_usd, made.forked_from, made.last_seq)
    assert figures == ("queued", 0, 0, 0, None, old.pk, 2)
    projections.rebuild(made.pk)
    made.refresh_from_db()
    assert (made.status, made.turns, made.last_seq) == ("queued", 0, 2)
    assert made.spec["limits"] == old.spec["limits"] and made.parent is None and made.root == made.pk


def test_from_an_earlier_turn_the_later_ones_are_not_there():
    old = two_turns()
    made = forks.fork(old.pk, by="bob", turn=1).run
    assert [message.text for message in messages(made)] == [TASK, "I look.", "result 1"]
    from_task = forks.fork(old.pk, by="bob", turn=0, note="Slower.").run
    (only,) = messages(from_task)
    assert only.text.startswith(TASK) and "Slower." in only.text


def test_a_model_that_had_answered_for_good_is_asked_to_go_on():
    made = forks.fork(two_turns().pk, by="bob").run
    assert forks.GO_ON in messages(made)[-1].text


def test_calls_that_were_under_way_when_the_run_was_lost_are_answered_truthfully():
    run = started()
    write(run, TurnStarted(), turn=1)
    asked = [{"call": f"c{n}", "wire_id": f"w{n}", "name": "run_command", "args": "{}"} for n in (1, 2)]
    chat = CallCompleted(operation="chat", name="m", status="ok", text="", tool_calls=asked, cost_source="none")
    write(run, chat, turn=1, call="m1")
    write(run, CallStarted(operation="execute_tool", name="run_command"), turn=1, call="c1")
    stopped = {"seconds": 0.1, "verified": False}
    write(run, RunInterrupted(command=None, by="x", reason="", stopped=stopped))
    *_, first, second = messages(forks.fork(run.pk, by="bob").run)
    assert (first.text, second.text) == (histories.UNKNOWN, histories.NOT_RUN)


def test_a_run_at_work_is_not_forked_and_an_unknown_turn_is_refused():
    run = started()
    with pytest.raises(StartRefused) as active:
        forks.fork(run.pk, by="bob")
    turn(run, 1, "Done.")
    ended(run)
    with pytest.raises(StartRefused) as unknown:
        forks.fork(run.pk, by="bob", turn=7)
    assert (active.value.code, active.value.status, unknown.value.code) == ("run_active", 409, "no_such_turn")
    assert Run.objects.count() == 1


def test_a_block_on_new_starts_holds_for_forks():
    old = two_turns()
    Block.objects.create(filter={"agent": "default"}, reason="spend", by="ann", created_at=old.created_at)
    with pytest.raises(StartRefused, match="has blocked new starts"):
        forks.fork(old.pk, by="bob")


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_fork_branches_from_the_tip_of_the_old_branch(tmp_path: Path, settings):
    settings.WORKSPACE_ROOTS = [tmp_path]
    source = repository(tmp_path / "repo")
    run = started(workspace=str(source))
    git(source, "branch", f"agent/{run.pk}")
    work = tmp_path / "work"
    git(source, "worktree", "add", "-q", str(work), f"agent/{run.pk}")
    tip = commit(work, "chart")
    turn(run, 1, "Done.")
    made = forks.fork(ended(run).pk, by="bob").run
    place = specs.of(made).workspace
    assert place is not None
    assert (place.kind, place.branch, place.start) == (WorkspaceKind.WORKTREE, f"agent/{made.pk}", tip)
    assert git(source, "rev-parse", "main") != tip


def test_a_fresh_workspace_is_branched_like_any_repository():
    run = two_turns()
    was = specs.of(run).workspace
    assert was is not None
    tip = commit(Path(was.path), "chart")
    place = specs.of(forks.fork(run.pk, by="bob").run).workspace
    assert place is not None and (place.source, place.start) == (was.path, tip)


def test_what_the_worker_has_not_put_away_yet_goes_along():
    run = two_turns()
    was = specs.of(run).workspace
    assert was is not None
    (Path(was.path) / "late").write_text("not committed yet")
    place = specs.of(forks.fork(run.pk, by="bob").run).workspace
    assert place is not None and place.start is not None
    assert "late" in git(was.path, "ls-tree", "--name-only", place.start).split()


def test_from_an_earlier_turn_the_event_says_which_commit_the_files_are_of():
    run = two_turns()
    made = forks.fork(run.pk, by="bob", turn=1).run
    body = decode(log.read_after(made.pk, 1, 1)[0]).data
    assert isinstance(body, RunForked) and body.workspace is not None
    assert "edits never committed by then, are not in it" in body.workspace


def test_a_plain_directory_is_used_as_it_stands_under_its_lease(tmp_path: Path, settings):
    settings.WORKSPACE_ROOTS = [tmp_path]
    (tmp_path / "plain").mkdir()
    run = started(workspace=str(tmp_path / "plain"))
    turn(run, 1, "Done.")
    ended(run)
    made = forks.fork(run.pk, by="bob").run
    assert specs.of(made).workspace == specs.of(run).workspace
    with pytest.raises((StartRefused, workspaces.WorkspaceRefused)) as busy:
        forks.fork(run.pk, by="bob")
    assert busy.value.code == "workspace_busy"


def test_without_its_files_a_run_is_not_forked():
    run = started(workspace=None)
    place = specs.of(run).workspace
    assert place is not None
    turn(run, 1, "Done.")
    ended(run)
    Path(place.path).rename(Path(place.path).with_suffix(".gone"))
    with pytest.raises(StartRefused) as gone:
        forks.fork(run.pk, by="bob")
    assert (gone.value.code, gone.value.status) == ("workspace_gone", 409)


# --- who and how ------------------------------------------------------------------------------------------------------


def test_the_api_answers_like_every_verb_and_keeps_who_did_it():
    old, operator = two_turns(), caller("operator")
    reply = operator.post(f"/api/runs/{old.pk}/fork", {"turn": 1, "note": "Again."}, idempotency_key="k")
    again = operator.post(f"/api/runs/{old.pk}/fork", {"turn": 1, "note": "Again."}, idempotency_key="k")
    assert (reply.status, reply.body["changed"]) == (202, True) and again.body == reply.body
    command = Command.objects.get(pk=reply.body["command"])
    assert (command.kind, command.state, command.open, command.args["run"]) == (
        "fork",
        "done",
        False,
        reply.body["run"],
    )
    row = operator.get(f"/api/runs/{reply.body['run']}").body
    assert (row["forked_from"], row["status"], row["owner"]) == (old.pk, "queued", "token:test operator")
    assert operator.get(f"/api/commands/{command.pk}").body["state"] == "done"
    assert AuditEntry.objects.filter(action="fork", target=f"run:{old.pk}", result="ok").count() == 1
    assert "fork" in operator.get(f"/api/runs/{old.pk}").body["can"]


@pytest.mark.parametrize(("given", "status", "code"), [({"turn": 9}, 400, "no_such_turn"), ({"turn": -1}, 422, None)])
def test_a_turn_that_is_none_is_told(given: dict[str, int], status: int, code: str | None):
    reply = caller("operator").post(f"/api/runs/{two_turns().pk}/fork", given)
    assert reply.status == status and (code is None or reply.code == code)


def test_looking_is_not_forking():
    old, viewer = two_turns(), caller("viewer")
    assert viewer.post(f"/api/runs/{old.pk}/fork").status == 403
    assert Caller().post(f"/api/runs/{old.pk}/fork").status == 401
    assert caller("operator").post(f"/api/runs/{UNKNOWN}/fork").status == 404
