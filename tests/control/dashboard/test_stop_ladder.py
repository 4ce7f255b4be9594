"""What a stop will do is told before the click: what it cuts off, each grace, what stays; and going on afterwards."""

from typing import Any

import pytest
from django.test import Client

from agents.kinds import CallStarted, RunCompleted, TurnStarted
from control.accounts.models import AuditEntry
from control.dashboard import stopping
from control.runs.models import Command, Run
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def opened(run: Run, name: str, call: str, args: str = "{}", operation: str = "execute_tool") -> None:
    write(run, CallStarted(operation=operation, name=name, args=args), turn=1, call=call)


def words(run: Run) -> str:
    family = list(Run.objects.filter(root=run.root).order_by("path"))
    found = stopping.under_way(run, family)
    return "\n".join(f"{rung.when}: {rung.what} {' '.join(rung.names)}" for rung in stopping.ladder(found))


def test_streams_tools_processes_and_sub_agents_are_told_with_their_graces():
    parent = make_run()
    child = make_run(parent=parent)
    opened(parent, "m", "m1", operation="chat")
    opened(child, "run_command", "c1", '{"command": "sleep 60"}')
    opened(child, "read_file", "c2", '{"path": "chart"}')
    told = words(parent)
    for text in ("1 provider stream closes", "1 tool is cancelled", "1 sub-agent stops", "1 process group gets TERM"):
        assert text in told
    assert "after 1 s: what is left of the groups gets KILL" in told and "sleep 60" in told and "chart" in told


def test_without_processes_there_is_no_grace_to_wait_for():
    run = make_run()
    assert "KILL" not in words(run) and "the run ends before its next step" in words(run)


def test_an_ended_run_has_no_ladder_ahead():
    run = make_run()
    write(run, RunCompleted(final="done"))
    run.refresh_from_db()
    assert words(run) == ""


def test_what_stays_is_told():
    parent = make_run()
    child = make_run(parent=parent)
    family = list(Run.objects.filter(root=parent.root))
    told = " ".join(stopping.stays(child, family))
    assert "its parent goes on" in told and "what is done already" in told
    assert "parent" not in " ".join(stopping.stays(parent, family))


def test_the_dialog_shows_the_ladder_with_and_without_scripts(operator: Client):
    run = make_run()
    opened(run, "m", "m1", operation="chat")
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/interrupt"):
        page = operator.get(address).content.decode()
        assert page.count('id="side-ladder"') == 1 and "1 provider stream closes" in page


def test_an_ended_run_offers_to_go_on_and_leads_to_the_new_run(operator: Client, viewer: Client, settings: Any):
    settings.DRILL_URL_GIVEN = True  # a model to start with, also where services are
    run = make_run()
    assert "After turn" not in operator.get(f"/runs/{run.pk}/").content.decode()
    write(run, TurnStarted(), turn=1)
    write(run, RunCompleted(final="done"))
    Run.objects.filter(pk=run.pk).update(spec=_spec())
    assert "After turn" in operator.get(f"/runs/{run.pk}/").content.decode()
    assert viewer.post(f"/runs/{run.pk}/fork", {"note": "x"}).status_code == 403
    answer = operator.post(f"/runs/{run.pk}/fork", {"note": "Go <b>slower</b>", "turn": "1"})
    new = Run.objects.get(forked_from=run.pk)
    assert answer["Location"] == f"/runs/{new.pk}/"
    page = operator.get(f"/runs/{new.pk}/").content.decode()
    assert "Goes on from" in page and "Go &lt;b&gt;slower&lt;/b&gt;" in page
    assert AuditEntry.objects.filter(action="fork", result="ok").exists()


def test_a_fork_that_is_refused_says_why(operator: Client):
    run = make_run()
    answer = operator.post(f"/runs/{run.pk}/fork", {"note": "x"}, follow=True)
    assert "Interrupt it first" in answer.content.decode()
    assert AuditEntry.objects.filter(action="fork", result="run_active").exists()


def test_a_fuse_is_raised_from_the_page_with_a_reason(operator: Client, viewer: Client):
    run = make_run()
    assert "Raise a fuse" in operator.get(f"/runs/{run.pk}/").content.decode()
    given = {"fuse": "max_cost", "limit": "2.50", "raise-reason": "one more hour"}
    assert viewer.post(f"/runs/{run.pk}/raise", given).status_code == 403
    for wrong in ({"limit": "much"}, {"limit": ""}, {"fuse": "max_hope"}, {"raise-reason": " "}):
        answer = operator.post(f"/runs/{run.pk}/raise", given | wrong, headers={"accept": "application/json"})
        assert answer.status_code == 400, wrong
    assert operator.post(f"/runs/{run.pk}/raise", given, headers={"accept": "application/json"}).status_code == 202
    command = Command.objects.get()
    assert (command.kind, command.args, command.reason) == ("raise", {"limits": {"max_cost": "2.50"}}, "one more hour")


def _spec() -> dict[str, object]:
    from control.runs import specs, starts

    started = starts.start(starts.StartRequest(agent="default", task="do it"), by="ann")
    return {**specs.to_json(specs.of(started)), "workspace": None}
