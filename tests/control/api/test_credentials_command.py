"""manage.py credentials: how each key fares, and an operator's word that one is good again."""

from decimal import Decimal
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.policy.credentials import Report
from control.accounts.models import AuditEntry
from control.fleet import credentials, pool
from control.fleet.models import CredentialState
from tests.control.api.test_cli import cli, refused

pytestmark = pytest.mark.django_db
KEY = "sk-canary-of-the-command"


@pytest.fixture(autouse=True)
def file(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("KEY_OF_A", KEY)
    path = tmp_path / "credentials.toml"
    settings.CREDENTIALS_FILE = str(path)
    path.write_text(
        '[[credential]]\nlabel = "a"\nprovider = "openai"\nbase_urls = ["https://a.example/v1"]\nkey_env = "KEY_OF_A"\n'
        '[[credential]]\nlabel = "b"\nprovider = "anthropic"\nbase_urls = ["https://b.example/v1"]\n'
        'key_env = "KEY_OF_A"\nlimit_usd = 2.50\nper = "day"\n'
    )
    return path


def told(label: str, reason: str | None = None, usd: str = "0", cooldown_s: float | None = None) -> None:
    report = Report(reason=reason, cooldown_s=cooldown_s)
    pool.report(label, credentials.all_of()[label], report, Decimal(usd))


def lines() -> dict[str, str]:
    out = cli("credentials")
    assert KEY not in out and "KEY_OF_A" not in out
    return {line.split()[0]: line for line in out.splitlines()}


def test_each_credential_is_a_line_with_its_health_its_spend_and_its_limit():
    told("a", "auth", usd="0.25")
    told("b", usd="1.5")
    found = lines()
    assert "openai" in found["a"] and "dead (auth)" in found["a"] and "an operator" in found["a"]
    assert "$0.2500" in found["a"]
    assert " ok " in found["b"] and "$1.5000" in found["b"] and "$2.5/day" in found["b"]
    told("b", usd="1")
    assert "spent" in lines()["b"] and "00:00:00 UTC" in lines()["b"]


def test_a_resting_key_tells_until_when():
    told("a", "rate_limit", cooldown_s=90)
    assert "resting (rate_limit)" in lines()["a"] and " UTC" in lines()["a"]


def test_revive_makes_a_dead_key_usable_and_is_in_the_audit_trail():
    told("a", "billing")
    assert "used again" in cli("credentials", "--revive", "a")
    assert CredentialState.objects.get(label="a").health == "ok"
    entry = AuditEntry.objects.get(action="revive_credential")
    assert (entry.target, entry.before["reason"], entry.after["health"]) == ("credential:a", "billing", "ok")
    assert "well already" in cli("credentials", "--revive", "a")


def test_revive_does_not_give_money_back():
    told("b", usd="9")
    assert "It still rests: b has spent its limit of $2.5" in cli("credentials", "--revive", "b")


def test_a_label_that_is_unknown_or_a_broken_file_is_one_sentence(file: Path):
    assert "Known labels: a, b" in refused("credentials", "--revive", "z")
    file.write_text(f"key = {KEY}")
    assert KEY not in refused("credentials")


def test_without_credentials_it_says_how_to_give_some(settings: Settings):
    settings.CREDENTIALS_FILE = ""
    assert "CREDENTIALS_FILE" in cli("credentials")
