"""Starting runs: what is frozen, what is refused and with which code."""

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from agents.spec import ModelSpec, WorkspaceKind
from control.runs import log, specs, starts
from control.runs.models import Block, Run, WorkspaceLease
from tests.control.records import write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet", "embedded")]


@pytest.fixture
def embedded(settings: Settings, tmp_path: Path) -> Path:
    """Embedded settings, whatever the database: the drill server, one workspace root."""
    settings.EMBEDDED = True
    settings.ALLOWED_BASE_URLS = []
    settings.MODEL_BASE_URL_GIVEN = False
    settings.DRILL_URL = "http://127.0.0.1:8089/v1"
    settings.AGENT_LIMITS = {}
    settings.CREDENTIALS_FILE = ""
    root = tmp_path / "root"
    root.mkdir()
    settings.WORKSPACE_ROOTS = [root]
    settings.DATA_DIR = tmp_path / "data"
    return root


def request(**given: Any) -> starts.StartRequest:
    return starts.StartRequest(**({"agent": "default", "task": "count the files"} | given))


def refused(**given: Any) -> starts.StartRefused:
    with pytest.raises(starts.StartRefused) as caught:
        starts.start(request(**given), by="ann")
    assert not Run.objects.exists(), "a refused start leaves no row"
    assert len(caught.value.message) > 20
    return caught.value


def repository(path: Path) -> Path:
    path.mkdir()
    git = ["git", "-C", str(path), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-qb", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    return path


def test_a_start_writes_the_row_and_run_queued_at_epoch_zero_and_publishes(
    published: list[str], hinted: list[tuple[str, bytes]]
) -> None:
    run = starts.start(request(labels={"team": "billing"}), by="ann")
    stored = Run.objects.get(pk=run.pk)
    assert (stored.status, stored.epoch, stored.last_seq, stored.owner) == ("queued", 0, 1, "ann")
    event = orjson.loads(log.read_after(run.pk, 0, 10)[0])
    assert event["data"] == {"agent": "default", "task": "count the files", "labels": {"team": "billing"}}
    assert published == [run.pk]
    assert [topic for topic, _ in hinted] == ["events"]


def test_the_frozen_spec_survives_the_database() -> None:
    run = starts.start(request(limits={"max_cost": "0.25", "max_turns": 7}, dry_run=True), by="ann")
    spec = specs.of(Run.objects.get(pk=run.pk))
    assert spec.model.model == "tour" and spec.model.base_url == "http://127.0.0.1:8089/v1"
    assert spec.limits.max_turns and (spec.limits.max_turns.value, spec.limits.max_turns.source) == (7, "request")
    assert spec.limits.max_cost and str(spec.limits.max_cost.value) == "0.25"
    assert spec.dry_run and spec.policy == "default" and spec.policy_body["rules"]
    assert "delegate" in spec.tools and "workspace" in spec.prompt
    assert specs.from_json(specs.to_json(spec)) == spec


def test_of_several_limits_the_tightest_wins_and_keeps_its_source(settings: Settings) -> None:
    from decimal import Decimal

    settings.AGENT_LIMITS = {"max_tokens": Decimal(100), "max_steps": Decimal(50)}
    run = starts.start(request(policy="strict", limits={"max_tokens": 200}), by="ann")
    limits = specs.of(run).limits
    assert limits.max_tokens and (limits.max_tokens.value, limits.max_tokens.source) == (100, "environment")
    assert limits.max_steps and (limits.max_steps.value, limits.max_steps.source) == (12, "policy")
    assert limits.max_turns and (limits.max_turns.value, limits.max_turns.source) == (90, "default")


@pytest.mark.parametrize(
    ("given", "code", "status"),
    [
        ({"agent": "nobody"}, "unknown_agent", 404),
        ({"agent": "a\x00b"}, "unknown_agent", 404),
        ({"task": "  \n"}, "empty_task", 400),
        ({"task": "x" * 1_000_001}, "task_too_long", 400),
        ({"task": "é" * 500_001}, "task_too_long", 400),
        ({"base_url": "ftp://host/v1", "model": "m"}, "bad_base_url", 400),
        ({"base_url": "host/v1", "model": "m"}, "bad_base_url", 400),
        ({"base_url": "http://", "model": "m"}, "bad_base_url", 400),
        ({"base_url": "http://host:99999/v1", "model": "m"}, "bad_base_url", 400),
        ({"base_url": "http://ann:pw@host/v1", "model": "m"}, "bad_base_url", 400),
        ({"base_url": "http://host/v1/chat/completions", "model": "m"}, "bad_base_url", 400),
        ({"base_url": "http://host/v1"}, "unknown_model", 400),
        ({"model": "gpt-unknown"}, "unknown_model", 400),
        ({"credential": "nope"}, "unknown_credential", 400),
        ({"policy": "nope"}, "unknown_policy", 400),
        ({"limits": {"max_turns": 0}}, "bad_limits", 400),
        ({"limits": {"max_turns": "many"}}, "bad_limits", 400),
        ({"limits": {"max_turns": 1.5}}, "bad_limits", 400),
        ({"limits": {"max_turns": True}}, "bad_limits", 400),
        ({"limits": {"max_cost": "NaN"}}, "bad_limits", 400),
        ({"limits": {"max_fun": 3}}, "bad_limits", 400),
        ({"limits": {"max_cost": 1}, "base_url": "http://host/v1", "model": "m"}, "unpriced_model", 400),
        ({"workspace": "/etc"}, "workspace_outside_roots", 400),
        ({"workspace": "relative"}, "workspace_missing", 400),
        ({"branch": "a..b"}, "bad_branch", 400),
    ],
)
def test_what_cannot_work_is_refused_with_its_code(given: dict[str, Any], code: str, status: int) -> None:
    error = refused(**given)
    assert (error.code, error.status) == (code, status)


def test_a_money_cap_without_a_price_is_taken_when_the_policy_says_so() -> None:
    given = {"limits": {"max_cost": 1}, "base_url": "http://host/v1", "model": "m"}
    assert starts.start(request(policy={"unpriced": "tokens_only"}, **given), by="ann").policy == "own"


def test_in_production_only_listed_addresses_are_allowed(settings: Settings) -> None:
    settings.EMBEDDED = False
    settings.ALLOWED_BASE_URLS = ["https://models.example/v1/"]
    error = refused(base_url="https://elsewhere.example/v1", model="m")
    assert error.code == "base_url_not_allowed"
    run = starts.start(request(base_url="https://MODELS.example:443/v1", model="m"), by="ann")
    assert specs.of(run).model.base_url == "https://models.example/v1"


def test_a_task_with_nul_and_half_a_surrogate_pair_is_made_safe_and_marked() -> None:
    run = starts.start(request(task="a\x00b\ud800c"), by="ann")
    event = orjson.loads(log.read_after(run.pk, 0, 1)[0])
    assert event["data"]["task"] == run.task and "\x00" not in run.task and "\ud800" not in run.task
    assert event["data"]["altered"]


# --- workspaces -------------------------------------------------------------------------------------------------------


def test_without_a_workspace_the_run_gets_a_fresh_one(tmp_path: Path) -> None:
    run = starts.start(request(), by="ann")
    workspace = specs.of(run).workspace
    assert workspace and workspace.kind is WorkspaceKind.FRESH
    assert workspace.path == str(tmp_path / "data" / "workspaces" / run.pk)


def test_a_plain_directory_is_held_until_the_run_has_ended(embedded: Path) -> None:
    place = embedded / "plain"
    (place / "inner").mkdir(parents=True)
    first = starts.start(request(workspace=str(place)), by="ann")
    workspace = specs.of(first).workspace
    assert workspace and workspace.kind is WorkspaceKind.DIRECTORY
    for other in (place, place / "inner", embedded):
        with pytest.raises(starts.StartRefused) as caught:
            starts.start(request(workspace=str(other)), by="ann")
        assert (caught.value.code, caught.value.status) == ("workspace_busy", 409)
        assert caught.value.detail == {"run": first.pk}
    _finish(first)
    assert not WorkspaceLease.objects.exists()
    starts.start(request(workspace=str(place / "inner")), by="ann")


def _finish(run: Run) -> None:
    from agents import kinds

    write(run, kinds.RunFailedEvent(error={"reason": "unknown", "message": "x"}))


def test_a_link_out_of_the_roots_is_seen_through(embedded: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (embedded / "link").symlink_to(tmp_path / "outside")
    assert refused(workspace=str(embedded / "link")).code == "workspace_outside_roots"
    assert refused(workspace=str(embedded / ".." / "outside")).code == "workspace_outside_roots"
    assert refused(workspace=str(embedded / "missing")).code == "workspace_missing"
    (embedded / "file").write_text("x")
    assert refused(workspace=str(embedded / "file")).code == "workspace_missing"


def test_a_repository_gives_every_run_a_worktree_on_a_branch_of_its_own(embedded: Path) -> None:
    place = repository(embedded / "repo")
    runs = [starts.start(request(workspace=str(place)), by="ann") for _ in range(2)]
    for run in runs:
        workspace = specs.of(run).workspace
        assert workspace and workspace.kind is WorkspaceKind.WORKTREE
        assert (workspace.branch, workspace.source) == (f"agent/{run.pk}", str(place))


def test_a_branch_that_is_in_use_is_busy(embedded: Path) -> None:
    place = repository(embedded / "repo")
    assert refused(workspace=str(place), branch="main").code == "branch_busy"
    starts.start(request(workspace=str(place), branch="fix/it"), by="ann")
    with pytest.raises(starts.StartRefused) as caught:
        starts.start(request(workspace=str(place), branch="fix/it"), by="ann")
    assert (caught.value.code, caught.value.status) == ("branch_busy", 409)
    starts.start(request(workspace=str(place), branch="fix/other"), by="ann")


# --- credentials ------------------------------------------------------------------------------------------------------


def test_a_key_goes_only_to_its_own_addresses(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "credentials.toml"
    file.write_text(
        '[[credential]]\nlabel = "a"\nprovider = "openai"\nbase_urls = ["https://a.example/v1"]\n'
        'key_env = "NO_SUCH_KEY"\n'
    )
    settings.CREDENTIALS_FILE = str(file)
    assert refused(credential="a", base_url="https://b.example/v1", model="m").code == "credential_host_mismatch"
    named = starts.start(request(credential="a", base_url="https://a.example/v1", model="m"), by="ann")
    free = starts.start(request(base_url="https://a.example/v1/", model="m"), by="ann")
    assert specs.of(named).model.credential == "a"
    assert specs.of(free).model.credential is None, "a run that names none uses any that fits"


def agent_with(*fallbacks: dict[str, str], **given: str) -> None:
    from control.fleet import versions
    from control.fleet.models import Agent

    fields: dict[str, Any] = {"prompt": "You work.", "fallbacks": list(fallbacks), **given}
    versions.save(Agent, "worker", fields, by="ann")


def test_an_agents_fallbacks_are_frozen_into_the_run(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "credentials.toml"
    file.write_text(
        '[[credential]]\nlabel = "a"\nprovider = "anthropic"\nbase_urls = ["https://a.example/v1"]\nkey_env = "K"\n'
    )
    settings.CREDENTIALS_FILE = str(file)
    agent_with({"model": "family"}, {"model": "m2", "base_url": "https://A.example/v1/", "credential": "a"})
    spec = specs.of(Run.objects.get(pk=starts.start(request(agent="worker"), by="ann").pk))
    agent_with()
    assert spec.fallbacks == (
        ModelSpec(model="family", base_url="http://127.0.0.1:8089/v1"),
        ModelSpec(model="m2", base_url="https://a.example/v1", credential="a", provider="anthropic"),
    )


def test_a_fallback_at_the_same_place_keeps_to_the_credential_that_the_run_names(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "credentials.toml"
    file.write_text('[[credential]]\nlabel = "a"\nbase_urls = ["https://a.example/v1"]\nkey_env = "K"\n')
    settings.CREDENTIALS_FILE = str(file)
    agent_with({"model": "m2"}, {"model": "m3", "base_url": "https://b.example/v1"}, base_url="https://a.example/v1")
    run = starts.start(request(agent="worker", model="m", credential="a"), by="ann")
    assert [model.credential for model in specs.of(run).fallbacks] == ["a", None]


@pytest.mark.parametrize(
    ("fallback", "code"),
    [
        ({"model": "no-such-scenario"}, "unknown_model"),
        ({"model": "m", "base_url": "https://a.example/v1", "credential": "nobody"}, "unknown_credential"),
        ({"model": "m", "base_url": "file:///etc"}, "bad_base_url"),
    ],
)
def test_a_run_whose_fallback_cannot_work_is_refused(fallback: dict[str, str], code: str) -> None:
    agent_with(fallback)
    assert refused(agent="worker").code == code


def test_a_policy_that_escalates_needs_its_model_among_those_of_the_run() -> None:
    refusal = refused(policy={"escalate": {"model": "strong"}})
    assert (refusal.code, "escalate.model" in refusal.message, "fallbacks" in refusal.message) == (
        "unknown_model",
        True,
        True,
    )
    agent_with({"model": "family"})
    assert starts.start(request(agent="worker", policy={"escalate": {"model": "family"}}), by="ann").policy == "own"


def test_a_money_cap_needs_the_price_of_every_fallback() -> None:
    agent_with({"model": "of-unknown-price", "base_url": "https://a.example/v1"})
    assert refused(agent="worker", limits={"max_cost": "1"}).code == "unpriced_model"


def test_a_money_cap_cannot_hold_on_a_price_table_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_CATALOG", "/nowhere/models.toml")
    refusal = refused(limits={"max_cost": "1"})
    assert (refusal.code, "/nowhere/models.toml" in refusal.message) == ("unpriced_model", True)


# --- blocks ---------------------------------------------------------------------------------------------------------


def block(**given: Any) -> Block:
    from django.utils import timezone

    return Block.objects.create(filter=given, reason="rogue agent", by="ben", created_at=timezone.now())


def test_a_block_on_starts_refuses_until_it_is_lifted() -> None:
    held = block()
    error = refused()
    assert (error.code, error.status, error.detail["block"]) == ("starts_blocked", 423, held.pk)
    assert "ben" in error.message and "rogue agent" in error.message
    from django.utils import timezone

    Block.objects.filter(pk=held.pk).update(lifted_at=timezone.now())
    starts.start(request(), by="ann")


@pytest.mark.parametrize(
    ("given", "blocked"),
    [
        ({"agent": "default"}, True),
        ({"agent": "other"}, False),
        ({"agent": "other,default"}, True),
        ({"label": "team=billing"}, True),
        ({"label": "team"}, True),
        ({"label": "team=ops"}, False),
        ({"project": "default"}, True),
        ({"project": "x"}, False),
        ({"q": "FILES"}, True),
        ({"q": "zebra"}, False),
        ({"status": "running"}, True),
        ({"ids": ["x"]}, False),
        ({"agent": "default", "project": "x"}, False),
    ],
)
def test_a_block_holds_only_the_starts_that_its_filter_matches(given: dict[str, Any], blocked: bool) -> None:
    block(**given)
    if blocked:
        assert refused(labels={"team": "billing"}).code == "starts_blocked"
    else:
        starts.start(request(labels={"team": "billing"}), by="ann")
