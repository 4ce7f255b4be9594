"""The verbs as plain forms: one command, one line of audit, an answer in words; and who may not."""

from collections.abc import Callable

import pytest
from django.test import Client

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallStarted, RunWaiting
from control.accounts.models import AuditEntry, Role, User
from control.runs.models import Command, Receipt, Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def test_an_interrupt_is_one_command_for_the_subtree_with_a_reason(operator: Client):
    run = make_run()
    answer = operator.post(f"/runs/{run.pk}/interrupt", {"reason": "wrong branch"})
    assert answer["Location"] == f"/runs/{run.pk}/"
    command = Command.objects.get()
    assert (command.kind, command.scope, command.by, command.reason) == (
        "interrupt",
        "subtree",
        "operator",
        "wrong branch",
    )
    entry = AuditEntry.objects.get(action="interrupt")
    assert (entry.actor, entry.target, entry.reason, entry.result) == (
        "operator",
        f"run:{run.pk}",
        "wrong branch",
        "ok",
    )
    html = page(operator, f"/runs/{run.pk}/")
    assert "Stop requested." in html and 'data-stop="requested "' in html and "0 of 1 stopped" in html


def test_interrupting_a_finished_run_says_so(operator: Client):
    run = make_run()
    write(run, kinds.RunCompleted(final="x"))
    assert "already finished" in operator.post(f"/runs/{run.pk}/interrupt", follow=True).content.decode()
    assert AuditEntry.objects.filter(action="interrupt").first().result == "already_finished"  # type: ignore[union-attr]


def test_the_interrupt_page_works_without_scripts(operator: Client):
    run = make_run()
    write(run, CallStarted(operation="chat", name="m"), turn=1, call=new_id())
    html = page(operator, f"/runs/{run.pk}/interrupt")
    assert "cuts 1 stream" in html and f'action="/runs/{run.pk}/interrupt"' in html and 'name="reason"' in html


def test_a_note_is_queued_shown_and_withdrawn(operator: Client):
    run = make_run()
    operator.post(f"/runs/{run.pk}/steer", {"note": "Look at conftest.py"})
    command = Command.objects.get()
    assert (command.kind, command.args, command.by) == ("steer", {"note": "Look at conftest.py"}, "operator")
    html = page(operator, f"/runs/{run.pk}/")
    assert "“Look at conftest.py”" in html and "queued" in html
    operator.post(f"/runs/{run.pk}/withdraw", {"command": command.pk})
    assert "Withdrawal requested." in page(operator, f"/runs/{run.pk}/")
    assert 'data-state="withdrawing"' in page(operator, f"/runs/{run.pk}/")


def test_a_note_shows_the_turn_it_went_in_at(operator: Client):
    run = make_run()
    operator.post(f"/runs/{run.pk}/steer", {"note": "Look"})
    command = Command.objects.get()
    write(run, kinds.SteerInjected(command=command.pk, note="Look", by="operator"), turn=7)
    assert Receipt.objects.get().turn == 7
    assert "in at turn 7" in page(operator, f"/runs/{run.pk}/")


def test_an_empty_note_is_refused_with_a_sentence(operator: Client):
    run = make_run()
    answer = operator.post(f"/runs/{run.pk}/steer", {"note": "  "}, headers={"Accept": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "empty_note"
    assert not Command.objects.exists()


def test_a_late_note_is_answered_not_lost(operator: Client):
    run = make_run()
    write(run, kinds.RunCompleted(final="x"))
    answer = operator.post(f"/runs/{run.pk}/steer", {"note": "late"}, headers={"Accept": "application/json"})
    assert answer.status_code == 409 and answer.json()["error"]["code"] == "run_finished"


@pytest.mark.parametrize(
    ("form", "args"),
    [
        ({"choose": "{call}:v2: the new one"}, {"call": "{call}", "text": "v2: the new one"}),
        ({"call": "{call}", "text-{call}": "ask Ann"}, {"call": "{call}", "text": "ask Ann"}),
        ({"decide": "{call}:deny"}, {"call": "{call}", "decision": "deny"}),
    ],
)
def test_an_answer_by_choice_by_text_or_by_decision(operator: Client, form: dict[str, str], args: dict[str, str]):
    run = make_run()
    call = new_id()
    write(run, CallStarted(operation="execute_tool", name="clarify"), turn=1, call=call)
    reason = "approval" if "decide" in form else "question"
    write(run, RunWaiting(reason=reason, call=call, text="Which?", choices=["v2: the new one"]), turn=1, call=call)
    filled = {name.replace("{call}", call): value.replace("{call}", call) for name, value in form.items()}
    operator.post(f"/runs/{run.pk}/answer", filled)
    assert Command.objects.get().args == {name: value.replace("{call}", call) for name, value in args.items()}


def ask_approval(run: Run, args: str = '{"command": "git push", "timeout": 5}') -> str:
    call = new_id()
    asked = RunWaiting(reason="approval", call=call, text="run_command git push", name="run_command", args=args)
    write(run, asked, turn=1, call=call)
    return call


def test_an_approval_shows_the_whole_call_and_what_can_be_done(operator: Client):
    run = make_run()
    call = ask_approval(run)
    html = page(operator, f"/runs/{run.pk}/")
    assert "Needs your approval" in html and "<code>run_command</code>" in html
    assert html.count("&quot;command&quot;: &quot;git push&quot;") == 2
    for decision in ("approve", "edit", "deny"):
        assert f'value="{call}:{decision}"' in html


def test_an_approval_is_denied_with_a_reason(operator: Client):
    run = make_run()
    call = ask_approval(run)
    operator.post(f"/runs/{run.pk}/answer", {"decide": f"{call}:deny", f"reason-{call}": "not today"})
    command = Command.objects.get()
    assert command.args == {"call": call, "decision": "deny", "reason": "not today"}
    assert command.reason == "not today"


def test_an_approval_is_edited_and_what_does_not_fit_is_told(operator: Client):
    run = make_run()
    call = ask_approval(run)

    def edit(text: str) -> int:
        form = {"decide": f"{call}:edit", f"args-{call}": text}
        return operator.post(f"/runs/{run.pk}/answer", form, headers={"Accept": "application/json"}).status_code

    assert [edit("{"), edit("[]"), edit('{"command": NaN}')] == [400, 400, 400]
    assert [edit('{"command": 3}'), edit('{"command": "a\\u0000"}'), edit('{"command": "[redacted:token]"}')] == [
        422
    ] * 3
    assert not Command.objects.exists()
    assert edit('{"command": "git push origin fix"}') == 202
    assert Command.objects.get().args == {
        "call": call,
        "decision": "edit",
        "args": {"command": "git push origin fix"},
    }


def test_what_was_decided_is_told_in_the_turn(operator: Client):
    run = make_run()
    call = ask_approval(run)
    write(run, kinds.RunContinued(decision="deny", by="ada", reason="not today"), turn=1, call=call)
    html = page(operator, f"/runs/{run.pk}/")
    assert "Denied" in html and "not today" in html and 'data-count="0"' in html


def test_what_no_database_holds_is_marked_before_it_is_stored(operator: Client):
    run = make_run()
    operator.post(f"/runs/{run.pk}/steer", {"note": "a\x00b"})
    operator.post(f"/runs/{run.pk}/interrupt", {"reason": "c\x00d"})
    notes = {command.kind: command.args.get("note") or command.reason for command in Command.objects.all()}
    assert notes == {"steer": "a␀b", "interrupt": "c␀d"}


def test_pause_and_go_on(operator: Client):
    run = make_run()
    operator.post(f"/runs/{run.pk}/pause", {"when": "before_call"})
    assert Command.objects.get().args == {"when": "before_call"}
    write(run, RunWaiting(reason="pause"))
    html = page(operator, f"/runs/{run.pk}/")
    assert "Paused" in html and f'formaction="/runs/{run.pk}/unpause"' in html
    operator.post(f"/runs/{run.pk}/unpause")
    assert Command.objects.filter(kind="unpause").exists()


def test_a_viewer_looks_and_does_not_act(viewer: Client):
    run = make_run()
    html = page(viewer, f"/runs/{run.pk}/")
    assert "role-viewer" in html and "may-act" not in html
    for verb, form in (("interrupt", {}), ("steer", {"note": "x"}), ("pause", {}), ("unpause", {}), ("answer", {})):
        assert viewer.post(f"/runs/{run.pk}/{verb}", form).status_code == 403
    assert viewer.post(f"/runs/{run.pk}/withdraw", {"command": new_id()}).status_code == 403
    assert viewer.get("/runs/new/").status_code == 403
    assert not Command.objects.exists()
    assert set(AuditEntry.objects.values_list("result", flat=True)) == {"forbidden"}


def test_forms_need_their_token(person: Callable[..., User]):
    run = make_run()
    client = Client(enforce_csrf_checks=True)
    client.force_login(person(Role.OPERATOR))
    assert client.post(f"/runs/{run.pk}/interrupt").status_code == 403
    assert client.get(f"/runs/{run.pk}/steer").status_code == 302
    assert not Command.objects.exists()
