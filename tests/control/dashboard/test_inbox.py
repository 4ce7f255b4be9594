"""The inbox: what every run asks, in one place; the first answer wins, and the second is told who gave it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.ids import new_id
from agents.kinds import RunWaiting
from control.accounts.models import AuditEntry, Role, Snooze, User
from control.runs.models import Command, Run
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
EVIL = "<script>alert(1)</script>\u202e"


def asks(text: str = "Which port?", *, choices: list[str] | None = None, **columns: object) -> tuple[Run, str]:
    run = make_run(**columns)  # type: ignore[arg-type]
    call = new_id()
    write(run, RunWaiting(reason="question", call=call, text=text, choices=choices), turn=1, call=call)
    return run, call


def wants_approval() -> tuple[Run, str]:
    run = make_run(task="Release 2.1")
    call = new_id()
    args = '{"command": "git push"}'
    asked = RunWaiting(reason="approval", call=call, text="git push", name="run_command", args=args)
    write(run, asked, turn=1, call=call)
    return run, call


def test_questions_and_approvals_of_runs_and_their_children_stand_in_one_list(viewer: Client):
    parent = make_run(task="Drain the queues")
    asks(task="Drain queue 2", parent=parent)
    wants_approval()
    html = page(viewer, "/inbox/")
    text = words(html)
    assert "2 runs wait for you." in text and "Drain queue 2" in text and "sub-agent of" in text
    assert "Approve?" in text and '"command": "git push"' in text
    assert "(2) Inbox" in html and 'data-asked="2"' in page(viewer, "/")


def test_an_answer_goes_out_from_the_page_and_leads_back_to_it(operator: Client):
    run, call = asks(choices=["8000", "8080"])
    answer = operator.post(f"/runs/{run.pk}/answer", {"choose": f"{call}:8080", "from": "inbox"})
    assert answer["Location"] == "/inbox/"
    assert Command.objects.get().args == {"call": call, "text": "8080"}
    text = words(page(operator, "/inbox/"))
    assert "Nobody waits for you" in text and "Answered, on the way" in text and "operator: “8080”" in text


def test_the_second_answer_is_told_who_gave_the_first(operator: Client, person: Callable[..., User]):
    run, call = asks()
    ben = Client()
    ben.force_login(person(Role.OPERATOR, "ben"))
    ben.post(f"/runs/{run.pk}/answer", {"call": call, f"text-{call}": "yes"})
    answer = operator.post(f"/runs/{run.pk}/answer", {"call": call, f"text-{call}": "no", "from": "inbox"}, follow=True)
    assert "ben answered first: “yes”. Yours was not sent." in words(answer.content.decode())
    assert Command.objects.count() == 1
    results = list(AuditEntry.objects.filter(action="answer").order_by("id").values_list("actor", "result"))
    assert results == [("ben", "ok"), ("operator", "already_answered")]


def test_a_decision_is_told_to_whoever_was_slower(operator: Client, person: Callable[..., User]):
    run, call = wants_approval()
    ben = Client()
    ben.force_login(person(Role.OPERATOR, "ben"))
    ben.post(f"/runs/{run.pk}/answer", {"decide": f"{call}:deny", f"reason-{call}": "not today"})
    told = operator.post(
        f"/runs/{run.pk}/answer", {"decide": f"{call}:approve"}, headers={"Accept": "application/json"}
    ).json()
    assert told["code"] == "already_answered" and "ben answered first: denied: not today" in told["message"]


def test_not_now_is_for_one_person_and_ends(operator: Client, viewer: Client):
    _, call = asks()
    operator.post("/inbox/snooze", {"call": call, "term": "1h"})
    assert "Nobody waits for you" in page(operator, "/inbox/") and "Show again" in page(operator, "/inbox/")
    assert operator.get("/live/inbox").json() == {"count": 0} and viewer.get("/live/inbox").json() == {"count": 1}
    Snooze.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert operator.get("/live/inbox").json() == {"count": 1}
    operator.post("/inbox/snooze", {"call": call, "term": "8h"})
    operator.post("/inbox/snooze", {"call": call})
    assert operator.get("/live/inbox").json() == {"count": 1}
    assert AuditEntry.objects.filter(action="snooze", target=f"call:{call}", result="ok").count() == 3
    operator.post("/inbox/snooze", {"call": call, "term": "9y"})
    assert AuditEntry.objects.filter(action="snooze", result="bad_term").exists()


def test_an_ask_whose_time_ends_soon_is_marked_and_stands_first(viewer: Client):
    now = timezone.now()
    asks("Later", spec={"limits": {"max_seconds": {"value": "90000", "source": "agent"}}}, started_at=now)
    limits = {"limits": {"max_seconds": {"value": "300", "source": "agent"}}}
    run, _ = asks("Now", spec=limits)
    Run.objects.filter(pk=run.pk).update(started_at=now - timedelta(seconds=290))
    asks("Whenever")
    html = page(viewer, "/inbox/")
    assert html.index("Now</p>") < html.index("Later</p>") < html.index("Whenever</p>")
    assert html.count('card soon"') == 1 and html.count("data-until") == 2 and "waits as long as it takes" in html


def test_the_list_comes_as_a_part_with_who_answered_of_late(operator: Client):
    run, call = asks()
    assert operator.get("/live/inbox?list=1").json()["count"] == 1
    operator.post(f"/runs/{run.pk}/answer", {"call": call, f"text-{call}": "yes"})
    told = operator.get("/live/inbox?list=1").json()
    assert told["count"] == 0 and told["gone"] == {call: "operator: “yes”"} and 'id="asks"' in told["html"]


def test_a_viewer_reads_and_cannot_answer(viewer: Client):
    run, call = asks()
    assert "Which port?" in page(viewer, "/inbox/")
    assert (
        viewer.post(f"/runs/{run.pk}/answer", {"call": call, f"text-{call}": "x", "from": "inbox"}).status_code == 403
    )
    assert not Command.objects.exists()


def test_what_agents_ask_is_only_text(viewer: Client):
    asks(EVIL, choices=[EVIL], task=EVIL, labels={EVIL: EVIL})
    html = page(viewer, "/inbox/") + viewer.get("/live/inbox?list=1").json()["html"]
    assert "<script>alert" not in html and "\u202e</p>" not in html


def test_a_stranger_signs_in_first(client: Client):
    for path in ("/inbox/", "/live/inbox"):
        assert client.get(path)["Location"].startswith("/sign-in/")
    assert client.post("/inbox/snooze", {"call": "x", "term": "1h"})["Location"].startswith("/sign-in/")
