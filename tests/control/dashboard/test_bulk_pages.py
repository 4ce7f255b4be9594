"""The kill switch and the note for many on their pages: counted first, confirmed by typing, told until it is over."""

import pytest
from django.test import Client

from agents.kinds import RunInterrupted
from control.accounts.models import AuditEntry
from control.runs import bulks
from control.runs.models import Block, Bulk, Command
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
GIVEN = {"agent": "scout", "reason": "runaway spend", "confirm": "stop"}


def test_the_page_counts_before_it_stops(operator: Client):
    make_run(agent="scout", task="Map the harbour")
    make_run(agent="other", task="Paint the mast")
    page = operator.get("/stop/?agent=scout").content.decode()
    assert '<b class="bulk-count">1</b> run would be stopped' in page
    assert "Map the harbour" in page and "Paint the mast" not in page
    assert not Command.objects.exists()


def test_an_empty_form_names_nobody(operator: Client):
    make_run()
    page = operator.get("/stop/").content.decode()
    assert "Count them" in page and "bulk-count" not in page
    operator.post("/stop/", {"reason": "x", "confirm": "stop"})
    assert not Command.objects.exists()


@pytest.mark.parametrize("missing", ["reason", "confirm"])
def test_nothing_is_stopped_without_a_reason_and_the_typed_word(operator: Client, missing: str):
    make_run(agent="scout")
    answer = operator.post("/stop/", GIVEN | {missing: ""})
    assert answer.status_code == 400 and b"field-error" in answer.content
    assert not Command.objects.exists() and not Bulk.objects.exists()


def test_the_confirmed_stop_leads_to_its_progress_and_is_audited(operator: Client):
    run = make_run(agent="scout")
    answer = operator.post("/stop/", GIVEN)
    bulk = Bulk.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/bulks/{bulk.pk}/")
    row = AuditEntry.objects.get(action="interrupt_many")
    assert (row.filter, row.reason, row.target) == ({"agent": "scout"}, "runaway spend", f"bulk:{bulk.pk}")
    page = operator.get(f"/bulks/{bulk.pk}/").content.decode()
    assert "0 of 1 stopped" in page and "runaway spend" in page
    stopped = {"sockets": 1, "processes": 0, "seconds": 0.1, "verified": False, "why": "it did not answer"}
    write(run, RunInterrupted(command=Command.objects.get().pk, by="x", reason="", stopped=stopped))
    page = operator.get(f"/bulks/{bulk.pk}/").content.decode()
    assert "1 of 1 stopped" in page and "unverified: it did not answer" in page


def test_a_form_that_is_sent_twice_is_one_bulk(operator: Client):
    make_run(agent="scout")
    given = GIVEN | {"wish": "01890000-0000-7000-8000-00000000abcd"}
    first, second = operator.post("/stop/", given), operator.post("/stop/", given)
    assert first["Location"] == second["Location"]
    assert Bulk.objects.count() == Command.objects.count() == 1


def test_a_block_stands_on_every_page_until_it_is_lifted_with_a_reason(operator: Client):
    make_run(agent="scout")
    operator.post("/stop/", GIVEN | {"block": "1"})
    block = Block.objects.get()
    for address in ("/", "/policies/", "/blocks/", "/live/banner"):
        page = operator.get(address).content.decode()
        assert "New starts are blocked" in page and "runaway spend" in page and "agent scout" in page, address
    operator.post(f"/blocks/{block.pk}/lift", {"reason": ""})
    block.refresh_from_db()
    assert block.lifted_at is None
    operator.post(f"/blocks/{block.pk}/lift", {"reason": "found it"})
    block.refresh_from_db()
    assert (block.lift_reason, block.lifted_at is not None) == ("found it", True)
    assert "New starts are blocked" not in operator.get("/policies/").content.decode()
    assert AuditEntry.objects.filter(action="lift", result="ok", reason="found it").exists()


def test_a_kill_switch_at_work_is_told_on_every_page(operator: Client):
    run = make_run(agent="scout")
    operator.post("/stop/", GIVEN)
    assert "Kill switch" in operator.get("/policies/").content.decode()
    stopped = {"seconds": 0.1, "verified": True}
    write(run, RunInterrupted(command=Command.objects.get().pk, by="x", reason="", stopped=stopped))
    bulks.go_on()
    assert "How far it is" not in operator.get("/policies/").content.decode()


def test_a_bulk_is_ended_midway_from_its_page(operator: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bulks, "PIECE", 1)
    monkeypatch.setattr(bulks, "MOMENT_S", 0.0)
    [make_run(agent="scout") for _ in range(3)]
    operator.post("/stop/", GIVEN)
    bulk = Bulk.objects.get()
    assert "Ask no further runs" in operator.get(f"/bulks/{bulk.pk}/").content.decode()
    operator.post(f"/bulks/{bulk.pk}/cancel", {"reason": "wrong filter"})
    bulks.go_on()
    page = operator.get(f"/bulks/{bulk.pk}/").content.decode()
    assert "Ended midway" in page and "wrong filter" in page and "1 of 3 had been asked" in page


def test_one_note_goes_to_many(operator: Client):
    runs = [make_run(agent="scout") for _ in range(2)]
    assert "would get it" in operator.get("/steer/?agent=scout").content.decode()
    assert operator.post("/steer/", {"agent": "scout", "note": " "}).status_code == 400
    operator.post("/steer/", {"ids": ",".join(run.pk for run in runs), "note": "Stop at noon."})
    assert {command.args["note"] for command in Command.objects.all()} == {"Stop at noon."}
    assert "0 of 2 have read it" in operator.get(f"/bulks/{Bulk.objects.get().pk}/").content.decode()


def test_who_may_only_look_sees_progress_and_no_switch(viewer: Client, operator: Client):
    make_run(agent="scout")
    operator.post("/stop/", GIVEN)
    bulk = Bulk.objects.get()
    assert viewer.get(f"/bulks/{bulk.pk}/").status_code == 200
    for address in ("/stop/", "/steer/"):
        assert viewer.get(address).status_code == 403
    assert viewer.post(f"/bulks/{bulk.pk}/cancel", {"reason": "x"}).status_code == 403


def test_hostile_words_in_a_filter_and_a_reason_stay_text(operator: Client):
    make_run(agent="scout")
    operator.post("/stop/", GIVEN | {"reason": "<script>alert(1)</script>", "block": "1"})
    page = operator.get("/").content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert b"<script>x" not in operator.get("/stop/?agent=<script>x").content


def test_the_fleet_offers_what_is_picked_and_what_is_filtered(operator: Client):
    run = make_run(agent="scout")
    done = make_run(agent="scout", held=False)
    write(done, RunInterrupted(command=None, by="x", reason="", stopped={"seconds": 0.1, "verified": True}))
    page = operator.get("/?q=agent:scout+harbour").content.decode()
    assert "/stop/?agent=scout&amp;q=harbour&amp;status=running%2Cwaiting%2Cqueued" in page
    page = operator.get("/").content.decode()
    assert f'name="ids" value="{run.pk}"' in page and f'name="ids" value="{done.pk}"' not in page
    assert '<b class="bulk-count">1</b>' in operator.get(f"/stop/?ids={run.pk}&ids={done.pk}").content.decode()
