"""The page of what an agent remembers, with plain forms; and who may not change it."""

import pytest
from django.test import Client

from agents import kinds
from agents.ids import new_id
from control.accounts.models import AuditEntry
from control.fleet import memory
from control.fleet.models import Memory
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
PATH = "/agents/default/memory/"
EVIL = "<script>alert(1)</script>\u202e"


def test_notes_are_added_changed_switched_off_and_deleted(operator: Client):
    assert "No notes yet." in page(operator, PATH)
    operator.post(PATH, {"do": "add", "text": "Use make."})
    row = Memory.objects.get()
    assert (row.text, row.author) == ("Use make.", "operator")
    operator.post(PATH, {"do": "save", "note": row.note, "version": "1", "text": "Use make -j2."})
    operator.post(PATH, {"do": "disable", "note": row.note})
    html = page(operator, PATH)
    assert "Use make -j2." in html and "Switched off" in html and "version 3" in html
    assert "changed meanwhile" not in html
    operator.post(PATH, {"do": "save", "note": row.note, "version": "1", "text": "late"})
    assert "Version 3 is current" in page(operator, PATH)
    operator.post(PATH, {"do": "delete", "note": row.note})
    assert not Memory.objects.exists()
    assert AuditEntry.objects.filter(action="write_memory", result="ok").count() == 4


def test_a_note_of_a_run_leads_to_the_run_and_is_only_text(operator: Client):
    run = make_run()
    memory.keep("default", EVIL, run=run.pk, call=new_id())
    html = page(operator, PATH)
    assert f'href="/runs/{run.pk}/"' in html and "<script>alert" not in html
    assert f'href="{PATH}"' in page(operator, f"/runs/{run.pk}/")


def test_a_viewer_reads_and_changes_nothing(viewer: Client):
    memory.add("default", "Use make.", by="ann")
    assert "Use make." in page(viewer, PATH)
    assert viewer.post(PATH, {"do": "add", "text": "x"}).status_code == 403
    assert Memory.objects.count() == 1


def test_an_unknown_agent_has_no_page(operator: Client):
    assert operator.get("/agents/nobody/memory/").status_code == 404


def test_what_servers_and_calls_for_approval_say_is_only_text(operator: Client):
    run = make_run()
    call = new_id()
    write(run, kinds.ServerConnected(server=EVIL, tools=[EVIL]), kinds.ServerLost(server=EVIL, why=EVIL))
    asked = kinds.RunWaiting(reason="approval", call=call, text=EVIL, name=EVIL, args=EVIL)
    write(run, kinds.RunContinued(decision="edit", by=EVIL, args=EVIL, problem=EVIL), asked, turn=1, call=call)
    html = page(operator, f"/runs/{run.pk}/")
    assert "<script>alert" not in html and "is down" in html and "Needs your approval" in html
