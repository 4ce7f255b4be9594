"""An approval in a real browser: the whole call is read, mended and decided; what is typed survives what happens."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from agents.ids import new_id
from agents.kinds import RunContinued, RunWaiting, TurnStarted
from control.accounts.models import Role
from control.runs.models import Command
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def test_a_call_is_edited_and_approved_while_the_run_goes_on_talking(window: Window):
    run = make_run(task="Release 2.1")
    write(run, TurnStarted(), turn=1)
    call = new_id()
    args = '{"command": "git push --force origin main"}'
    asked = RunWaiting(reason="approval", call=call, text="run_command git push", name="run_command", args=args)
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    write(run, asked, turn=1, call=call)
    card = page.locator(f"#ask-{call}")
    expect(card.locator("pre")).to_contain_text('"command": "git push --force origin main"')
    card.get_by_text("Edit…").click()
    field = card.get_by_label("Arguments as JSON")
    field.fill('{"command": "git push origin fix"}')
    card.get_by_text("Deny…").click()
    # The card is sent again, with another text.
    again = replace(asked, text="run_command git push, asked again")
    write(run, again, turn=1, call=call)
    expect(card).to_contain_text("asked again")
    expect(field).to_have_value('{"command": "git push origin fix"}')
    card.get_by_role("button", name="Approve with these").click()
    expect(page.get_by_text("Approved with your arguments.")).to_be_visible()
    assert Command.objects.get().args == {
        "call": call,
        "decision": "edit",
        "args": {"command": "git push origin fix"},
    }
    taken = RunContinued(decision="edit", by="operator", args='{"command": "git push origin fix"}')
    write(run, taken, turn=1, call=call)
    expect(card).to_have_count(0)
    expect(page.locator("#turns")).to_contain_text("Approved with other arguments")
    assert not window.complaints


def test_on_a_phone_a_call_is_denied_with_a_reason(window: Window):
    run = make_run(task="Release 2.1")
    call = new_id()
    args = '{"command": "rm -rf build"}'
    write(run, TurnStarted(), turn=1)
    write(run, RunWaiting(reason="approval", call=call, text="rm", name="run_command", args=args), turn=1, call=call)
    page = window.page(size=PHONE)
    live(page, f"/runs/{run.pk}/")
    card = page.locator(f"#ask-{call}")
    card.get_by_text("Deny…").click()
    card.get_by_label("Reason, told to the model").fill("keep it")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Denied.")).to_be_visible()
    assert Command.objects.get().args == {"call": call, "decision": "deny", "reason": "keep it"}
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_viewer_reads_the_call_and_cannot_decide(window: Window):
    run = make_run()
    call = new_id()
    asked = RunWaiting(reason="approval", call=call, text="x", name="run_command", args='{"command": "x"}')
    write(run, asked, turn=1, call=call)
    page = window.page(role=Role.VIEWER)
    live(page, f"/runs/{run.pk}/")
    expect(page.locator(f"#ask-{call} pre")).to_be_visible()
    expect(page.locator(f"#ask-{call}").get_by_role("button", name="Approve")).to_be_hidden()
