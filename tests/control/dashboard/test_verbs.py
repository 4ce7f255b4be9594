"""The verbs as plain forms: one command, one line of audit, an answer in words; and who may not."""

from collections.abc import Callable

import pytest
from django.test import Client

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallStarted, RunWaiting
from control.accounts.models import AuditEntry, Role, User
from control.runs.models import Command, Receipt
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
    write(run, RunWaiting(reason="question", call=call, text="Which?", choices=["v2: the new one"]), turn=1, call=call)
    filled = {name.replace("{call}", call): value.replace("{call}", call) for name, value in form.items()}
    operator.post(f"/runs/{run.pk}/answer", filled)
    assert Command.objects.get().args == {name: value.replace("{call}", call) for name, value in args.items()}


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
