"""Agents and policies: read, saved as new versions, checked before they are saved."""

from pathlib import Path

import pytest
from pytest_django import Settings

from control.accounts.models import AuditEntry
from control.api.outputs import AgentOut, AgentsOut, PoliciesOut, PolicyOut
from control.fleet.models import Agent, Policy
from tests.control.api.callers import Caller

pytestmark = pytest.mark.django_db
SCOUT = {"prompt": "You look around.", "tools": ["list_files", "read_file"], "limits": {"max_turns": 5}}


def test_the_shipped_ones_are_there(viewer: Caller):
    AgentsOut.model_validate(agents := viewer.get("/api/agents").body)
    PoliciesOut.model_validate(policies := viewer.get("/api/policies").body)
    assert "default" in [agent["name"] for agent in agents["agents"]]
    assert {"strict", "ladder", "default", "off"} <= {policy["name"] for policy in policies["policies"]}
    AgentOut.model_validate(viewer.get("/api/agents/default").body)
    PolicyOut.model_validate(viewer.get("/api/policies/default").body)


def test_saving_makes_a_new_version_and_keeps_the_old(admin: Caller):
    first = admin.put("/api/agents/scout", SCOUT)
    assert (first.status, first.body["version"], first.body["changed"]) == (201, 1, True)
    second = admin.put("/api/agents/scout", SCOUT | {"prompt": "You look closely."})
    assert (second.status, second.body["version"]) == (200, 2)
    assert admin.get("/api/agents/scout").body["prompt"] == "You look closely."
    assert list(Agent.objects.filter(name="scout").values_list("version", "current").order_by("version")) == [
        (1, False),
        (2, True),
    ]
    row = AuditEntry.objects.order_by("pk").last()
    assert row is not None
    assert (row.action, row.before["version"], row.after["version"]) == ("write_agent", 1, 2)


def test_an_agents_limits_may_be_of_a_whole_day_and_are_audited(admin: Caller):
    limits = {"max_turns": 5, "max_cost_per_day": "2.50", "max_tokens_per_day": 1_000_000}
    saved = admin.put("/api/agents/scout", SCOUT | {"limits": limits})
    told = {"max_turns": "5", "max_cost_per_day": "2.50", "max_tokens_per_day": "1000000"}
    assert (saved.status, saved.body["limits"]) == (201, told)
    row = AuditEntry.objects.order_by("pk").last()
    assert row is not None and row.after["limits"] == told
    reply = admin.put("/api/agents/scout", SCOUT | {"limits": {"max_cost_per_day": "much"}})
    assert reply.status == 422 and "max_cost_per_day" in str(reply.body)


def test_saving_what_is_there_changes_nothing(admin: Caller):
    admin.put("/api/agents/scout", SCOUT)
    again = admin.put("/api/agents/scout", SCOUT)
    assert (again.status, again.body["version"], again.body["changed"]) == (200, 1, False)


def test_a_change_to_an_outdated_version_is_refused(admin: Caller):
    admin.put("/api/agents/scout", SCOUT)
    admin.put("/api/agents/scout", SCOUT | {"prompt": "Two.", "version": 1})
    reply = admin.put("/api/agents/scout", SCOUT | {"prompt": "Three.", "version": 1})
    assert (reply.status, reply.code, reply.body["error"]["detail"]) == (409, "version_conflict", {"current": 2})


@pytest.fixture
def anywhere(settings: Settings) -> None:
    """Any address may be used, whatever the database."""
    settings.EMBEDDED, settings.ALLOWED_BASE_URLS = True, []


@pytest.mark.usefixtures("anywhere")
def test_fallbacks_are_kept_in_order_without_what_was_not_given(admin: Caller):
    wanted = [{"model": "slow"}, {"model": "m2", "base_url": "https://b.example/v1", "provider": "anthropic"}]
    saved = admin.put("/api/agents/scout", SCOUT | {"fallbacks": [wanted[0], wanted[1] | {"credential": ""}]})
    assert (saved.status, saved.body["fallbacks"]) == (201, wanted)
    AgentOut.model_validate(admin.get("/api/agents/scout").body)
    assert Agent.objects.get(name="scout").fallbacks == wanted
    assert admin.put("/api/agents/scout", SCOUT | {"fallbacks": wanted}).body["changed"] is False


@pytest.mark.usefixtures("anywhere")
def test_a_fallback_gets_no_credential_of_another_host(admin: Caller, settings: Settings, tmp_path: Path):
    file = tmp_path / "credentials.toml"
    file.write_text('[[credential]]\nlabel = "a"\nbase_urls = ["https://a.example/v1"]\nkey_env = "NO_SUCH_KEY"\n')
    settings.CREDENTIALS_FILE = str(file)
    fallback = {"model": "m", "credential": "a"}
    assert admin.put("/api/agents/one", SCOUT | {"fallbacks": [fallback]}).status == 201
    at_b = admin.put("/api/agents/two", SCOUT | {"fallbacks": [fallback | {"base_url": "https://b.example/v1"}]})
    assert at_b.code == "credential_host_mismatch"
    with_agents_own = SCOUT | {"base_url": "https://b.example/v1", "fallbacks": [fallback]}
    assert admin.put("/api/agents/two", with_agents_own).code == "credential_host_mismatch"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tools": ["launch_rocket"]}, "unknown_tool"),
        ({"policy": "nonsense"}, "unknown_policy"),
        ({"delegates_to": ["nobody"]}, "unknown_agent"),
        ({"base_url": "ftp://x"}, "bad_base_url"),
        ({"fallbacks": [{"model": "m", "base_url": "ftp://x"}]}, "bad_base_url"),
        ({"fallbacks": [{"model": "m", "credential": "nobody"}]}, "unknown_credential"),
        ({"fallbacks": [{"model": "m", "provider": "smoke"}]}, "unknown_provider"),
        ({"fallbacks": [{"model": " "}]}, "unknown_model"),
        ({"fallbacks": [{"model": ""}]}, "invalid"),
        ({"fallbacks": [{"model": "m", "api_key": "sk-1"}]}, "invalid"),
        ({"fallbacks": [{"model": "m"}] * 11}, "invalid"),
        ({"mcp_servers": [{"name": "x"}]}, "bad_mcp_servers"),
        ({"mcp_servers": [{"name": "x", "command": "y", "env": ["SECRET_KEY"]}]}, "bad_mcp_servers"),
        ({"prompt": ""}, "invalid"),
        ({"limits": {"max_turns": -1}}, "invalid"),
        ({"prompt": "a\x00"}, "invalid"),
    ],
)
def test_an_agent_that_could_not_work_is_not_saved(admin: Caller, change: dict, code: str):
    reply = admin.put("/api/agents/scout", SCOUT | change)
    assert reply.code == code
    assert not Agent.objects.filter(name="scout").exists()


@pytest.mark.parametrize("name", ["-x", "a b", "ä", "x" * 101, "a%00b"])
def test_a_name_that_is_none_is_refused(admin: Caller, name: str):
    reply = admin.put(f"/api/agents/{name}", SCOUT)
    assert (reply.status, reply.code) == (400, "bad_name")
    assert admin.get(f"/api/agents/{name}").status == 404


def test_a_policy_is_saved_and_read_back(admin: Caller):
    body = {"fuses": {"max_steps": 40}, "ladder": {"block": 3, "identity": {"read_file": ["path"]}}}
    assert admin.put("/api/policies/mine", {"body": body}).status == 201
    assert admin.get("/api/policies/mine").body["body"] == body


@pytest.mark.parametrize(
    "body",
    [
        {"approvals": [{"tool": ""}]},
        {"fuses": {"max_steps": -1}},
        {"fuses": {"max_steps": "many"}},
        {"note": "a\x00"},
        {"x": "y" * 100_001},
    ],
)
def test_a_policy_that_could_not_work_is_not_saved(admin: Caller, body: dict):
    assert admin.put("/api/policies/mine", {"body": body}).status == 422
    assert not Policy.objects.filter(name="mine").exists()


def test_a_policy_is_taken_and_given_as_toml(admin: Caller):
    path, toml, text = "/api/policies/mine", "application/toml", "# why so few\n[fuses]\nmax_steps = 7\n"
    assert admin.put("/api/policies/mine", {"toml": text, "reason": "the night of the 3rd"}).status == 201
    row = admin.get("/api/policies/mine").body
    assert (row["body"], row["reason"]) == ({"fuses": {"max_steps": 7}}, "the night of the 3rd")
    shown = admin.get("/api/policies/mine", accept="application/toml")
    assert shown.body.decode() == text and shown.headers["Content-Type"].startswith("application/toml")
    raw = admin.ask("PUT", f"{path}?version=1", text.replace("7", "8").encode(), type=toml)
    assert (raw.status, raw.body["version"]) == (200, 2)
    assert admin.ask("PUT", f"{path}?version=1", text.encode(), type=toml).code == "version_conflict"
    assert admin.put("/api/policies/mine", {"body": {"fuses": {"max_steps": 8}}}).body["changed"] is False
    assert admin.get("/api/policies/mine", accept="application/toml").body.startswith(b"# why")
    for body in ({}, {"body": {}, "toml": ""}, {"toml": "["}):
        assert admin.put("/api/policies/mine", body).status == 422
    assert admin.ask("PUT", "/api/agents/mine", text.encode(), type=toml).status == 422
