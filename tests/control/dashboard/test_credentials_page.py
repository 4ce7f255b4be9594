"""The page of credentials: health, cooldown, spend; a key itself is never in it; resting and waking by hand."""

from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from agents.policy.credentials import Health, Report
from control.accounts.models import AuditEntry
from control.fleet import credentials, pool
from control.fleet.models import Agent, CredentialState
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet", "keys")]
SECRET = "sk-nobody-shall-read-this"
FILE = """
[[credential]]
label = "main"
provider = "openai"
base_urls = ["https://models.example/v1"]
key_env = "MAIN_KEY"
limit_usd = 2
per = "day"

[[credential]]
label = "spare key/2"
base_urls = ["https://other.example/v1"]
key_file = "/nowhere/key"
"""


@pytest.fixture
def keys(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "credentials.toml"
    path.write_text(FILE)
    settings.CREDENTIALS_FILE = str(path)
    monkeypatch.setenv("MAIN_KEY", SECRET)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return path


def row(html: str, slug: str) -> str:
    return words(html[html.index(f'id="credential-{slug}"') :].split("</tr>")[0])


def state(label: str) -> CredentialState:
    return CredentialState.objects.get(label=label)


def test_a_key_tells_where_it_may_go_and_what_it_has_spent(viewer: Client):
    main = credentials.known("main")
    pool.report("main", main, Report(), Decimal("1.70"))
    Agent.objects.filter(name="default").update(credential="main")
    html = page(viewer, "/credentials/")
    text = row(html, "main")
    for word in ("Well", "openai, environment MAIN_KEY", "https://models.example/v1", "$1.70 / $2.00 a day", "default"):
        assert word in text, word
    assert "gauge-warn" in html and SECRET not in html
    assert "no limit" in row(html, "spare-key2") and "has no key" in row(html, "spare-key2")


def test_resting_spent_and_dead_keys_are_told_apart(viewer: Client):
    main, spare = credentials.known("main"), credentials.known("spare key/2")
    pool.report("main", main, Report(), Decimal("2.10"))
    pool.report("spare key/2", spare, Report(reason="auth"), Decimal(0))
    html = page(viewer, "/credentials/")
    assert "Limit spent" in row(html, "main") and "Dead" in row(html, "spare-key2")
    assert "until a person wakes it" in row(html, "spare-key2")
    pool.revive(spare)
    pool.report("spare key/2", spare, Report(reason="rate_limit", cooldown_s=120), Decimal(0))
    assert "Resting the provider limited its rate; back at" in row(page(viewer, "/credentials/"), "spare-key2")


def test_what_the_provider_says_is_left_of_a_key_stands_beside_it(viewer: Client):
    main = credentials.known("main")
    said = "Key limit exceeded (daily limit): $0.02 <left>, \u202ecan only afford 310 tokens."
    pool.report("main", main, Report(reason="billing", said=said), Decimal(0))
    html = page(viewer, "/credentials/")
    assert "can only afford 310 tokens" in row(html, "main") and "<left>" not in html and "\u202e" not in html
    pool.revive(main)
    assert "can only afford" not in page(viewer, "/credentials/")


def test_a_key_is_laid_aside_and_woken_by_hand(operator: Client):
    page(operator, "/credentials/")
    operator.post("/credentials/main/change", {"do": "rest", "term": "1h", "reason": "being rolled"})
    assert (state("main").health, state("main").reason) == ("resting", "operator")
    assert "a person let it rest" in row(page(operator, "/credentials/"), "main")
    operator.post("/credentials/main/change", {"do": "rest", "term": "15m"})
    operator.post("/credentials/main/change", {"do": "wake", "reason": "rolled"})
    assert state("main").health == Health.OK.value and state("main").cooldown_until is None
    entries = list(AuditEntry.objects.order_by("id").values_list("action", "reason", "result"))
    assert entries == [
        ("rest_credential", "being rolled", "ok"),
        ("rest_credential", None, "unchanged"),
        ("revive_credential", "rolled", "ok"),
    ]
    first = AuditEntry.objects.order_by("id")[0]
    assert first.before["health"] == "ok" and first.after["health"] == "resting" and first.target == "credential:main"


def test_a_label_with_a_slash_and_a_blank_has_its_address(operator: Client):
    html = page(operator, "/credentials/")
    assert 'action="/credentials/spare%20key/2/change"' in html
    operator.post("/credentials/spare%20key/2/change", {"do": "rest", "term": "7d"})
    assert state("spare key/2").health == "resting"


def test_nonsense_changes_nothing_and_is_written_down(operator: Client):
    operator.post("/credentials/main/change", {"do": "rest", "term": "9y"})
    operator.post("/credentials/gone/change", {"do": "wake"})
    results = list(AuditEntry.objects.order_by("id").values_list("result", flat=True))
    assert results == ["bad_term", "unknown_credential"]


def test_a_viewer_only_looks(viewer: Client):
    for given in ({"do": "rest", "term": "1h"}, {"do": "wake"}):
        assert viewer.post("/credentials/main/change", given).status_code == 403
    assert set(AuditEntry.objects.values_list("result", flat=True)) == {"forbidden"}


def test_a_broken_file_is_told_without_a_line_of_it(viewer: Client, keys: Path):
    keys.write_text(f'[[credential]]\nlabel = "{SECRET}\n')
    html = page(viewer, "/credentials/")
    assert "is no valid TOML" in html and SECRET not in html
