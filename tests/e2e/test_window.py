"""The window in a real browser: live, steady under the reader's hands, and good enough on a phone to stop a run."""

import re

import pytest
from playwright.sync_api import Page, expect

from agents import kinds
from agents.commands import CommandKind, Scope
from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted, TurnStarted
from control.accounts.models import Role
from control.runs import bus, inbox
from control.runs.models import Command, Run
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live
from tests.fixtures.story import go_on, interrupted, story, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

# What the reader or the clock put there is no part of the comparison, nor is the order of attributes.
SHAPE = """(id) => {
  const shape = (node) => {
    if (node.nodeType === 3) return node.data.trim().replace(/\\s+/g, " ");
    if (node.nodeType !== 1) return "";
    const time = node.localName === "time";
    const mine = [...node.attributes].filter((a) => a.name !== "open" && !(time && a.name === "title"));
    const names = mine.map((a) => `${a.name}=${a.value}`).sort().join(" ");
    const inside = time ? "" : [...node.childNodes].map(shape).filter(Boolean).join("|");
    return `<${node.localName} ${names}>${inside}`;
  };
  return shape(document.getElementById(id));
}"""
SIDES = ("side-status", "side-stats", "side-family", "side-notes", "side-asks", "side-fuses", "side-stop", "side-verbs")


def shapes(page: Page) -> dict[str, str]:
    return {id: page.evaluate(SHAPE, id) for id in ("turns", "outline", "marks", "chart", *SIDES)}


def test_a_page_that_watched_equals_a_page_that_came_late(window: Window):
    run = make_run(task="Fix flaky test_invoice_total")
    watching = window.page()
    live(watching, f"/runs/{run.pk}/")
    teller = told(run)
    expect(watching.locator("#turn-3")).to_be_visible()
    waiting = Run.objects.get(pk=run.pk).waiting_call
    assert waiting
    go_on(teller, waiting)
    issued = inbox.issue(run_id=run.pk, kind=CommandKind.INTERRUPT, by="m.ops", scope=Scope.SUBTREE)
    assert issued.command
    interrupted(teller, issued.command.pk)
    expect(watching.locator('[data-final="interrupted"]')).to_be_visible()
    expect(watching.locator('#side-status[data-status="interrupted"]')).to_be_visible()
    late = window.page()
    live(late, f"/runs/{run.pk}/")
    watching.wait_for_timeout(600)
    seen, fresh = shapes(watching), shapes(late)
    for id, html in fresh.items():
        assert seen[id] == html, id
    assert window.complaints == []


def test_no_page_makes_the_browser_complain(window: Window):
    run = story().run
    page = window.page()
    for path in ("/", f"/runs/{run.pk}/", "/runs/new/", f"/runs/{run.pk}/interrupt"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
    page.context.clear_cookies()
    page.goto("/sign-in/")
    page.wait_for_load_state("networkidle")
    assert window.complaints == []


def test_text_streams_as_text_and_a_withdrawn_attempt_goes(window: Window):
    run = make_run()
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    call = new_id()
    write(run, TurnStarted(), CallStarted(operation="chat", name="m"), turn=1, call=call)
    text = page.locator(f"#text-{call}")
    expect(text).to_have_count(1)

    def say(offset: int, words: str) -> None:
        bus.bus().publish(
            "text",
            f'{{"run":"{run.pk}","type":"delta","call":"{call}","attempt":1,"offset":{offset},"text":"{words}"}}'.encode(),
        )

    say(0, "<b>One</b> ")
    say(11, "two\\u202e")
    expect(text).to_have_text("<b>One</b> two⟨U+202E⟩")
    assert text.locator("b").count() == 0
    say(99, "does not fit")
    bus.bus().publish("text", f'{{"run":"{run.pk}","type":"withdrawn","call":"{call}","attempt":1}}'.encode())
    expect(text).to_have_text("")
    done = CallCompleted(operation="chat", name="m", status="ok", text="Final words.", cost_source="none")
    write(run, done, turn=1, call=call)
    expect(text).to_have_text("Final words.")
    assert text.get_attribute("data-streaming") is None


def test_a_cut_line_comes_back_without_loss(window: Window):
    run = make_run()
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    for turn in range(1, 21):
        page.evaluate("document.getElementById('run').pilothouse.live.socket.close()")
        write(run, TurnStarted(), turn=turn)
    expect(page.locator("#turn-20")).to_be_attached(timeout=20_000)
    assert page.locator("#turns > .turn").evaluate_all("nodes => nodes.map(n => n.dataset.turn)") == [
        str(turn) for turn in range(1, 21)
    ]
    expect(page.locator("#badge")).to_have_attribute("data-state", "live")


def test_without_sockets_the_page_asks_again_and_says_so(window: Window):
    run = make_run()
    page = window.page()
    page.route_web_socket(re.compile("/ws/"), lambda socket: socket.close())
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("#badge")).to_have_attribute("data-state", "polling", timeout=20_000)
    write(run, TurnStarted(), turn=1)
    expect(page.locator("#turn-1")).to_be_visible()


def test_without_sockets_the_fleet_asks_again_and_says_so(window: Window):
    make_run()
    page = window.page()
    page.route_web_socket(re.compile("/ws/"), lambda socket: socket.close())
    page.goto("/")
    expect(page.locator("#badge")).to_have_attribute("data-state", "polling", timeout=20_000)
    later = make_run(task="Came while nothing but asking was left")
    expect(page.locator(f"#run-{later.pk}")).to_be_attached(timeout=15_000)


def test_a_note_is_sent_without_leaving_and_its_receipt_moves(window: Window):
    run = make_run()
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    page.keyboard.press("s")
    page.keyboard.type("The failure is a leaking fixture.")
    page.click("#steer-send")
    receipt = page.locator(".receipt")
    expect(receipt).to_have_attribute("data-state", "requested")
    command = Command.objects.get()
    expect(page.locator("#steer-note")).to_have_value("")
    write(run, kinds.CommandReceived(command=command.pk, command_kind="steer", by="operator"))
    expect(receipt).to_have_attribute("data-state", "delivered")
    write(run, kinds.SteerInjected(command=command.pk, note="The failure", by="operator"), turn=4)
    expect(receipt).to_contain_text("in at turn 4")
    expect(page.locator(f'.note-steer[data-command="{command.pk}"]')).to_be_visible()


def test_patches_leave_focus_typing_and_open_folds_alone(window: Window):
    teller = story()
    page = window.page()
    live(page, f"/runs/{teller.run.pk}/")
    waiting = Run.objects.get(pk=teller.run.pk).waiting_call
    answer = page.locator(f"#answer-{waiting}")
    answer.fill("half an ans")
    fold = page.locator("details.call-fold").first
    fold.locator("summary").click()
    answer.focus()
    for _ in range(5):
        write(teller.run, kinds.EditRecorded(path="x", before_sha256=None, sha256=None, bytes=1, state="a"), turn=1)
    expect(page.locator("#turn-1 .edit")).to_have_count(6)
    page.wait_for_timeout(400)
    assert answer.input_value() == "half an ans"
    assert answer.evaluate("node => node === document.activeElement")
    assert fold.get_attribute("open") is not None


def test_a_question_is_answered_by_its_button(window: Window):
    teller = story()
    page = window.page()
    live(page, f"/runs/{teller.run.pk}/")
    page.locator(".ask .choices button", has_text="v3").click()
    expect(page.locator("#messages")).to_contain_text("Answer sent.")
    waiting = Run.objects.get(pk=teller.run.pk).waiting_call
    assert Command.objects.get().args == {"call": waiting, "text": "v3"}
    teller.tell(kinds.RunContinued(), call=waiting)
    expect(page.locator(".ask")).to_have_count(0)


def test_an_interrupt_says_what_it_cuts_and_is_followed_to_its_end(window: Window):
    run = make_run()
    call = new_id()
    write(run, TurnStarted(), CallStarted(operation="chat", name="m"), turn=1, call=call)
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    page.keyboard.press("i")
    dialog = page.locator("#interrupt-dialog")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("cuts 1 stream")
    page.keyboard.type("wrong branch")
    page.click("#interrupt-confirm")
    expect(dialog).to_be_hidden()
    stop = page.locator("#side-stop")
    expect(stop).to_have_attribute("data-stop", "requested ")
    expect(stop).to_contain_text("0 of 1 stopped")
    command = Command.objects.get()
    assert command.reason == "wrong branch"
    write(run, kinds.CommandReceived(command=command.pk, command_kind="interrupt", by="operator"))
    expect(stop).to_have_attribute("data-stop", "requested delivered ")
    write(run, kinds.RunStopping(command=command.pk, by="operator"))
    expect(stop).to_have_attribute("data-stop", "requested delivered stopping ")
    stopped = {"sockets": 1, "processes": 0, "children": 0, "abandoned": [], "seconds": 0.02, "verified": True}
    write(run, kinds.RunInterrupted(command=command.pk, by="operator", reason="wrong branch", stopped=stopped))
    expect(stop).to_contain_text("1 of 1 stopped")
    expect(stop).to_contain_text("verified")
    expect(page.locator("#interrupt-open")).to_have_attribute("aria-disabled", "true")
    expect(page).to_have_title(re.compile("Interrupted"))


def test_a_link_in_an_alert_opens_the_dialog_and_stops_nothing_by_itself(window: Window):
    run = make_run()
    page = window.page()
    live(page, f"/runs/{run.pk}/#interrupt-dialog")
    expect(page.locator("#interrupt-dialog")).to_be_visible()
    assert not Command.objects.exists()
    page.click("#interrupt-confirm")
    expect(page.locator("#side-stop")).to_have_attribute("data-stop", "requested ")
    write(run, kinds.RunCompleted(final="done meanwhile"))
    live(page, f"/runs/{run.pk}/?again#interrupt-dialog")
    expect(page.locator("#interrupt-open")).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#interrupt-dialog")).to_be_hidden()


def test_bare_keys_only_look(window: Window):
    run = make_run()
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    for key in "abcdefghjklmnopqrtuvwxyz0123456789":
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    assert not Command.objects.exists()


def test_a_viewer_sees_no_verbs(window: Window):
    run = make_run()
    page = window.page(role=Role.VIEWER)
    live(page, f"/runs/{run.pk}/")
    for selector in ("#interrupt-open", "#steer", ".thumb", "#pause-menu"):
        expect(page.locator(selector)).to_be_hidden()
    page.keyboard.press("i")
    expect(page.locator("#interrupt-dialog")).to_be_hidden()


def test_the_fleet_patches_rows_in_place_and_holds_new_ones_back(window: Window):
    first = make_run(task="first")
    second = make_run(task="second")
    page = window.page()
    live(page, "/")
    page.locator(f"#run-{second.pk}").hover()
    write(first, TurnStarted(), turn=3)
    expect(page.locator(f"#run-{first.pk} .c-turn b")).to_have_text("3")
    third = make_run(task="third")
    pill = page.locator("[data-new-pill]")
    expect(pill).to_have_text("1 new")
    order = "nodes => nodes.map(n => n.dataset.run)"
    assert page.locator(".run-row").evaluate_all(order) == [second.pk, first.pk]
    page.mouse.move(5, 5)
    expect(pill).to_be_hidden()
    assert page.locator(".run-row").evaluate_all(order) == [third.pk, second.pk, first.pk]
    write(third, kinds.RunCompleted(final="done"))
    expect(page.locator(f"#run-{third.pk} .state")).to_contain_text("Completed")
    expect(page.locator("#strip")).to_contain_text("2 running")


def test_the_fleet_stays_a_page_long_however_many_runs_change_and_older_ones_follow_on_the_next(window: Window):
    runs = [make_run() for _ in range(62)]
    page = window.page()
    live(page, "/")
    rows = page.locator(".run-row")
    expect(rows).to_have_count(60)
    write(runs[0], TurnStarted(), turn=3)
    write(runs[-1], TurnStarted(), turn=4)
    expect(page.locator(f"#run-{runs[-1].pk} .c-turn b")).to_have_text("4")
    page.wait_for_timeout(400)
    expect(rows).to_have_count(60)
    expect(page.locator("[data-new-pill]")).to_be_hidden()
    runs += [make_run() for _ in range(63)]
    expect(page.locator(f"#run-{runs[-1].pk}")).to_be_visible()
    ids = "nodes => nodes.map(n => n.dataset.run)"
    page.wait_for_timeout(600)
    newest = rows.evaluate_all(ids)
    assert len(newest) <= 120
    page.get_by_role("link", name="Older runs").click()
    expect(page.locator(f"#run-{newest[0]}")).to_have_count(0)
    every = [run.pk for run in reversed(runs)]
    assert newest + rows.evaluate_all(ids) == every[: len(newest) + rows.count()]


def test_a_phone_can_stop_a_run(window: Window):
    teller = story()
    page = window.page(size=PHONE, has_touch=True)
    live(page, f"/runs/{teller.run.pk}/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bar = page.locator(".thumb .button")
    assert bar.count() == 3
    for index in range(3):
        box = bar.nth(index).bounding_box()
        assert box and box["height"] >= 44 and box["y"] + box["height"] <= 844 and box["y"] > 700
    bar.first.tap()
    page.locator("#interrupt-confirm").tap()
    expect(page.locator("#side-stop")).to_contain_text("requested")
    assert Command.objects.get().kind == "interrupt"
    page.goto("/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_view_stays_where_the_reader_is(window: Window):
    run = make_run()
    for turn in range(1, 26):
        write(run, TurnStarted(), turn=turn)
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    middle = page.locator(".middle")
    assert middle.evaluate("n => n.scrollHeight - n.clientHeight - n.scrollTop") < 60
    middle.evaluate("n => { n.scrollTop = 100 }")
    page.wait_for_timeout(100)
    write(run, TurnStarted(), turn=26)
    expect(page.locator("#turn-26")).to_be_attached()
    assert abs(middle.evaluate("n => n.scrollTop") - 100) < 2
    page.locator("[data-to-bottom]").click()
    assert middle.evaluate("n => n.scrollHeight - n.clientHeight - n.scrollTop") < 60
