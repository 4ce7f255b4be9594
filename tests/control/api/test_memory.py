"""What an agent remembers: read, added, changed with versions, switched off, deleted for good; and frozen into runs."""

import pytest

from agents.ids import new_id
from control.accounts.models import AuditEntry
from control.api.outputs import NotesOut
from control.fleet import memory
from control.fleet.models import Agent, Memory
from control.runs import specs, starts
from tests.control.api.callers import UNKNOWN, Caller

pytestmark = pytest.mark.django_db
PATH = "/api/agents/default/memory"


def test_a_note_is_added_read_and_changed_in_versions(operator: Caller, viewer: Caller):
    added = operator.post(PATH, {"text": "Tests run with make test."})
    assert (added.status, added.body["version"], added.body["author"]) == (201, 1, "token:test operator")
    note = added.body["id"]
    changed = operator.put(f"{PATH}/{note}", {"text": "Tests run with pytest -x.", "version": 1})
    assert (changed.status, changed.body["version"], changed.body["changed"]) == (200, 2, True)
    shown = viewer.get(PATH).body
    NotesOut.model_validate(shown)
    assert [(row["id"], row["text"]) for row in shown["notes"]] == [(note, "Tests run with pytest -x.")]
    assert Memory.objects.filter(note=note).count() == 2
    stale = operator.put(f"{PATH}/{note}", {"text": "x", "version": 1})
    assert (stale.status, stale.code) == (409, "version_conflict")
    same = operator.put(f"{PATH}/{note}", {"text": "Tests run with pytest -x."})
    assert (same.body["version"], same.body["changed"]) == (2, False)


def test_a_deleted_note_is_nowhere_any_more(operator: Caller):
    note = operator.post(PATH, {"text": "the door code is 4711"}).body["id"]
    operator.put(f"{PATH}/{note}", {"disabled": True})
    assert operator.delete(f"{PATH}/{note}").body["changed"] is True
    assert not Memory.objects.filter(note=note).exists()
    assert operator.delete(f"{PATH}/{note}").status == 404
    row = AuditEntry.objects.filter(action="write_memory", result="deleted").get()
    assert "4711" not in f"{row.before}{row.after}"


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        (PATH, {"text": "  "}, "empty_note"),
        (PATH, {"text": "x" * 4001}, "note_too_long"),
        (PATH, {"note": "x"}, "invalid"),
        ("/api/agents/nobody/memory", {"text": "x"}, "not_found"),
    ],
)
def test_a_note_that_cannot_be_kept_is_refused(operator: Caller, path: str, body: dict, code: str):
    assert operator.post(path, body).code == code
    assert not Memory.objects.exists()


def test_an_unknown_note_is_told(operator: Caller):
    assert operator.put(f"{PATH}/{UNKNOWN}", {"text": "x"}).status == 404


def test_secrets_do_not_stay_in_notes(operator: Caller):
    added = operator.post(PATH, {"text": "use AKIAIOSFODNN7EXAMPLE here\x00"})
    assert "AKIA" not in added.body["text"] and "[redacted:" in added.body["text"]


def test_a_run_writes_a_note_once_however_often_its_call_runs():
    run, call = new_id(), new_id()
    assert memory.keep("default", "It builds with ninja.", run=run, call=call)
    assert memory.keep("default", "It builds with ninja.", run=run, call=call)
    assert not memory.keep("default", "It builds with ninja.", run=run, call=new_id())
    row = Memory.objects.get()
    assert (row.author, row.call) == (f"run:{run}", call)


def test_a_full_notebook_takes_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "MOST_NOTES", 1)
    memory.keep("default", "one", run=new_id(), call=new_id())
    with pytest.raises(memory.Refused, match="full"):
        memory.keep("default", "two", run=new_id(), call=new_id())


def test_a_run_freezes_the_enabled_notes_and_the_servers_of_its_agent(operator: Caller, admin: Caller):
    first = operator.post(PATH, {"text": "first"}).body["id"]
    operator.post(PATH, {"text": "second"})
    operator.put(f"{PATH}/{first}", {"disabled": True})
    servers = [{"name": "git", "command": "uvx", "args": ["mcp-server-git"]}]
    agent = admin.get("/api/agents/default").body
    fields = {name: agent[name] for name in ("prompt", "tools", "policy")}
    assert admin.put("/api/agents/default", fields | {"mcp_servers": servers}).body["mcp_servers"] == servers
    run = starts.start(starts.StartRequest(agent="default", task="do it"), by="ann")
    operator.post(PATH, {"text": "third"})
    spec = specs.of(run)
    assert spec.memory == ("second",)
    assert list(spec.mcp_servers) == servers
    assert Agent.objects.get(name="default", current=True).version == 2
