"""Agents in the window: laid out, edited with a check, versions, compared, as TOML; and nothing typed is lost."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django.fixtures import Settings

from agents.errors import ConfigError
from control.accounts.models import AuditEntry
from control.fleet import agent_source, agents, versions
from control.fleet.models import Agent
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet", "allowed")]
EVIL = "<script>alert(1)</script>\u202e"
MINE = '''# Careful with the basket.
prompt = """
You mend the basket.
Ask before you push.
"""
tools = ["read_file", "edit_file", "run_command", "clarify", "delegate"]
model = "big-1"
policy = "strict"
delegates_to = ["default"]

[limits]
max_turns = 40
max_cost = 2.5
max_tokens_per_day = 5000000

[[fallbacks]]
model = "small-1"
base_url = "http://127.0.0.1:9/v1"

[[mcp_servers]]
name = "git"
command = "uvx"
args = ["mcp-server-git"]
env = ["GIT_TOKEN"]
'''


@pytest.fixture
def allowed(settings: Settings) -> None:
    """With a database server only listed addresses may be used."""
    settings.ALLOWED_BASE_URLS = ["http://127.0.0.1:9/v1"]


def saved(text: str = MINE, name: str = "mender", by: str = "ann", reason: str = "") -> Agent:
    fields = {**agent_source.read(text), "source": text}
    return versions.save(Agent, name, fields, by=by, about={"reason": reason}).row


def edit(client: Client, text: str, *, version: int = 1, do: str = "save", name: str = "mender", **more: Any) -> Any:
    return client.post(f"/agents/{name}/edit/", {"text": text, "version": version, "do": do, **more})


def test_the_list_tells_model_policy_limits_and_runs(viewer: Client):
    saved(reason="A trial")
    make_run(agent="mender")
    html = page(viewer, "/agents/")
    row = words(html[html.index('id="agent-mender"') :].split("</tr>")[0])
    for word in ("mender v1", "You mend the basket.", "big-1 then small-1", "strict", "turns 40, cost $2.50"):
        assert word in row, word
    assert "tokens a day, all runs 5,000,000" in row and "1 MCP server" in row and "delegates to default" in row
    assert "1 now 1 ever" in row and "A trial" in row and "/-/new/" not in html


def test_an_agent_is_laid_out_with_the_runs_that_use_it(viewer: Client):
    saved()
    run = make_run(agent="mender", task="Mend total()")
    html = page(viewer, "/agents/mender/")
    text = words(html)
    for word in ("Ask before you push.", "Turns 40", "Fallback 1 small-1", "run_command unknown", "read_file safe"):
        assert word in text, word
    assert "MCP git uvx mcp-server-git reads GIT_TOKEN" in text and f"/runs/{run.pk}/" in html
    assert "# Careful with the basket." in text and "Asked by" in words(page(viewer, "/agents/default/"))
    assert 'href="/agents/mender/"' in page(viewer, "/agents/default/")


def test_a_run_starts_from_its_agent(operator: Client):
    saved()
    assert 'href="/runs/new/?agent=mender"' in page(operator, "/agents/mender/")
    assert '<option value="mender" selected>' in page(operator, "/runs/new/?agent=mender")


def test_a_text_is_checked_then_saved_as_a_version(admin: Client):
    saved()
    text = MINE.replace("= 40", "= 50").replace("Ask before", "Never")
    html = edit(admin, text, do="preview").content.decode()
    assert "limits.max_turns was" in words(html) and "- Ask before you push." in words(html)
    assert Agent.objects.filter(name="mender").count() == 1
    assert edit(admin, text, reason="more turns")["Location"] == "/agents/mender/"
    now = agents.current("mender")
    assert now is not None and (now.version, now.limits["max_turns"], now.source) == (2, "50", text)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target, entry.reason) == ("write_agent", "agent:mender", "more turns")
    assert entry.before["limits"]["max_turns"] == "40" and entry.after["version"] == 2
    history = words(page(admin, "/agents/mender/versions/"))
    assert "more turns" in history and "Never you push." in history and "The first one." in history


@pytest.mark.parametrize(
    ("old", "new", "says", "line"),
    [
        ('policy = "strict"', 'policy = "nobody"', "There is no policy", 8),
        ('"read_file", ', '"read_fiel", ', "There is no tool", 6),
        ("max_turns = 40", "max_turns = 0", "must be a number above 0", 12),
        ("max_turns = 40", "turns = 40", "limits knows no", 12),
        ('delegates_to = ["default"]', 'delegates_to = ["x"]', "There is no agent", 9),
        ('command = "uvx"', 'command = "uvx"\nurl = "http://x"', "either a `command` or a `url`", 20),
        ('base_url = "http://127.0.0.1:9/v1"', 'base_url = "ftp://x"', "cannot be used", 16),
        ('model = "big-1"', 'model = "big-1', "no valid TOML", 7),
        ('model = "big-1"', "model = 7", "model is a text", 7),
        ('model = "big-1"', 'modell = "x"', "knows no 'modell'", 7),
    ],
)
def test_what_no_run_could_use_is_refused_with_its_line_and_kept(
    admin: Client, old: str, new: str, says: str, line: int
):
    saved()
    text = MINE.replace(old, new)
    answer = edit(admin, text, reason="my reason")
    html = answer.content.decode()
    assert answer.status_code == 400 and says in words(html), words(html)[:3000]
    assert f'data-line="{line}"' in html and "my reason" in html and "Ask before you push." in html
    assert Agent.objects.filter(name="mender").count() == 1
    assert AuditEntry.objects.get().result == "bad_agent"


def test_who_was_slower_sees_what_changed_and_loses_nothing(admin: Client):
    saved()
    saved(MINE.replace("2.5", "9"), by="m.ops", reason="dearer")
    answer = edit(admin, MINE.replace("= 40", "= 30"))
    html = answer.content.decode()
    assert answer.status_code == 409 and "m.ops saved version 2 meanwhile" in words(html)
    assert "max_turns = 30" in html and 'name="version" value="2"' in html
    assert AuditEntry.objects.get().result == "version_conflict"


def test_an_agent_goes_out_as_toml_and_comes_back_the_same(admin: Client):
    row = saved()
    answer = admin.get("/agents/mender/versions/1/toml")
    assert answer.content.decode() == MINE and 'filename="mender-v1.toml"' in answer["Content-Disposition"]
    body = agent_source.body_of(row)
    assert agent_source.read(agent_source.written(body)) == body
    file = SimpleUploadedFile("a.toml", answer.content)
    html = admin.post("/agents/-/new/", {"name": "twin", "text": "", "do": "save", "file": file}).content.decode()
    assert "You mend the basket." in html and agents.current("twin") is None
    admin.post("/agents/-/new/", {"name": "twin", "text": MINE, "do": "save"})
    twin = agents.current("twin")
    assert twin is not None and agent_source.body_of(twin) == body


def test_what_ships_can_be_written_and_read(admin: Client):
    body = agents.shipped()
    again = agent_source.read(agent_source.written(body))
    assert {**again, "prompt": again["prompt"].strip()} == body
    edit(admin, 'prompt = "short"\n', name="default")
    html = page(admin, "/agents/default/")
    assert "and not like this" in html and "default@shipped" in html
    assert "You are an engineer" in page(admin, "/agents/default/edit/?from=default@shipped")


def test_a_name_is_taken_once_and_older_versions_come_back(admin: Client):
    saved()
    taken = admin.post("/agents/-/new/", {"name": "mender", "text": MINE, "do": "save"})
    assert taken.status_code == 400 and "There is an agent mender already" in taken.content.decode()
    saved(MINE.replace("= 40", "= 30"))
    assert "from=mender@1" in page(admin, "/agents/mender/versions/1/")
    assert "Back to mender v1." in page(admin, "/agents/mender/edit/?from=mender@1")
    assert "mender-copy" in page(admin, "/agents/-/new/?copy=mender@1")


def test_two_agents_stand_side_by_side(viewer: Client):
    saved()
    saved(MINE.replace("= 40", "= 30").replace("Ask before", "Never"))
    text = words(page(viewer, "/agents/-/compare/?a=mender@1&b=mender@2"))
    assert "1 value differs" in text.replace(" , ", ", ") and "and so does the prompt" in text and "+ Never you" in text
    assert "They are the same." in words(page(viewer, "/agents/-/compare/?a=default&b=default@shipped"))
    assert "There is no nobody" in viewer.get("/agents/-/compare/?a=nobody").content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_an_admin_writes(role: str, request: pytest.FixtureRequest):
    client = request.getfixturevalue(role)
    saved()
    html = page(client, "/agents/mender/")
    assert "/edit/" not in html and "/-/new/" not in html
    for path in ("/agents/mender/edit/", "/agents/-/new/"):
        assert client.get(path).status_code == 403
        assert client.post(path, {"text": MINE, "version": 1, "do": "save", "name": "other"}).status_code == 403
    assert Agent.objects.filter(name__in=("mender", "other")).count() == 1
    assert set(AuditEntry.objects.values_list("result", flat=True)) == {"forbidden"}


def test_what_agents_hold_is_only_text(viewer: Client):
    fields = {
        **agent_source.DEFAULTS, "prompt": EVIL, "tools": [EVIL], "model": EVIL, "base_url": EVIL, "credential": EVIL,
        "delegates_to": [EVIL.replace("/", "")], "fallbacks": [{"model": EVIL}],
        "mcp_servers": [{"name": EVIL, "url": EVIL}],
    }  # fmt: skip
    versions.save(Agent, "evil", fields, by=EVIL, about={"reason": EVIL})
    versions.save(Agent, "evil", {**fields, "prompt": EVIL + "x"}, by=EVIL)
    for path in ("", "evil/", "evil/versions/", "evil/versions/1/", "-/compare/?a=evil@1&b=evil@2"):
        html = page(viewer, f"/agents/{path}")
        assert "<script>alert" not in html and "\u202e" not in html, path


def test_a_nul_or_a_time_is_no_agent():
    for text, says in (
        ('prompt = "a\\u0000b"', "NUL"),
        ('prompt = "x"\n[[mcp_servers]]\nname = 1979-05-27', "neither"),
    ):
        with pytest.raises(ConfigError, match=says):
            agent_source.read(text)
