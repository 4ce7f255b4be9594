"""CREDENTIALS_FILE: what it may say, which credentials fit where, and that no key is ever quoted."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.spec import ModelSpec
from control.fleet import credentials
from control.fleet.credentials import Credential, CredentialError

CANARY = "sk-canary-0123456789abcdef"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Write:
    file = tmp_path / "credentials.toml"
    settings.CREDENTIALS_FILE = str(file)
    settings.MODEL_BASE_URL = "https://own.example/v1"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return lambda text: (file.write_text(text), file)[1]


def entry(label: str, url: str = "https://a.example/v1", more: str = "", provider: str = "openai") -> str:
    return (
        f'[[credential]]\nlabel = "{label}"\nprovider = "{provider}"\nbase_urls = ["{url}"]\n'
        f'key_env = "KEY_OF_{label.upper()}"\n{more}\n'
    )


def labels(model: ModelSpec, *, rotate: bool = False) -> list[str]:
    return [one.label for one in credentials.pool_of(model, rotate=rotate)]


def model(url: str = "https://a.example/v1", **given: str) -> ModelSpec:
    return ModelSpec(model="m", base_url=url, **given)


def test_a_change_of_the_file_is_seen_by_the_next_reader(write: Write) -> None:
    write(entry("a"))
    assert list(credentials.all_of()) == ["a"]
    write(entry("a") + entry("b", more='limit_usd = 2.50\nper = "day"'))
    assert (credentials.all_of()["b"].limit_usd, credentials.all_of()["b"].per) == (Decimal("2.5"), "day")


@pytest.mark.parametrize(
    "text",
    [
        f"label = {CANARY}",
        f'[[credential]]\nlabel = "a"\nkey = "{CANARY}"',
        f'[[credential]]\nbase_urls = ["https://a.example/v1"]\nkey_env = "{CANARY}"',
        f'[[credential]]\nlabel = "a"\nbase_urls = ["https://a.example/v1"]\nkey_env = "{CANARY}"\nkey_file = "x"',
        f'[[credential]]\nlabel = "a"\nbase_urls = ["https://a.example/v1"]\nkey_env = ["{CANARY}"]',
        f'[[credential]]\nlabel = "a"\nbase_urls = ["https://u:{CANARY}@a.example/v1"]\nkey_env = "K"',
        entry("a") + entry("a"),
        entry("a", more='per = "fortnight"'),
        entry("a", more='limit_usd = "much"'),
        entry("a", more="limit_usd = -1"),
        entry("a", more="limit_usd = nan"),
        entry("a", more="limit_usd = true"),
        entry("a" * 101),
        'credential = "a"',
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_without_quoting_it(write: Write, text: str) -> None:
    write(text)
    with pytest.raises(CredentialError) as caught:
        credentials.all_of()
    assert caught.value.code == "bad_credentials_file"
    assert CANARY not in str(caught.value) and caught.value.__cause__ is None


def test_a_file_that_is_missing_is_told(settings: Settings) -> None:
    settings.CREDENTIALS_FILE = "/nowhere/credentials.toml"
    with pytest.raises(CredentialError, match="cannot be read"):
        credentials.all_of()


def test_all_credentials_of_an_address_are_the_pool_of_a_model_that_names_none(write: Write) -> None:
    write(entry("a") + entry("b") + entry("far", "https://b.example/v1"))
    assert labels(model("https://A.example/v1/")) == ["a", "b"]
    assert labels(model("https://c.example/v1")) == []
    assert labels(model("https://a.example/v2")) == []


def test_of_credentials_at_one_address_those_of_the_very_provider_are_the_pool(write: Write) -> None:
    write(entry("a", provider="anthropic") + entry("b") + entry("vendor", "https://b.example/v1", provider="groq"))
    assert labels(model(provider="anthropic")) == ["a"]
    assert labels(model(provider="openai")) == ["b"]
    assert labels(model("https://b.example/v1")) == ["vendor"]


def test_a_named_credential_stands_alone_unless_it_may_be_rotated(write: Write) -> None:
    write(entry("a") + entry("b"))
    assert labels(model(credential="b")) == ["b"]
    assert labels(model(credential="b"), rotate=True) == ["b", "a"]


def test_a_named_credential_that_is_gone_or_of_another_host_is_an_error(write: Write) -> None:
    write(entry("a"))
    with pytest.raises(CredentialError) as caught:
        credentials.pool_of(model(credential="z"), rotate=True)
    assert caught.value.code == "unknown_credential"
    with pytest.raises(CredentialError) as caught:
        credentials.pool_of(model("https://b.example/v1", credential="a"), rotate=True)
    assert caught.value.code == "credential_host_mismatch"


def test_the_environments_own_key_goes_to_its_own_address_only(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(entry("a"))
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    assert labels(model("https://own.example/v1")) == ["environment"]
    assert labels(model("https://a.example/v1")) == ["a"]
    with pytest.raises(CredentialError, match=r"goes only to https://own\.example/v1"):
        credentials.pool_of(model("https://a.example/v1", credential="environment"))


def test_the_environments_own_key_does_not_pass_by_a_limit_of_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(entry("a", "https://own.example/v1", more="limit_usd = 1"))
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    assert labels(model("https://own.example/v1")) == ["a"]


def test_a_key_is_read_from_its_source_and_shown_by_no_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{CANARY}\n")
    by_file = Credential(label="a", provider="openai", base_urls=(), key_file=str(secret))
    monkeypatch.setenv("KEY_OF_B", CANARY)
    by_name = Credential(label="b", provider="openai", base_urls=(), key_env="KEY_OF_B")
    assert by_file.read_key() == by_name.read_key() == CANARY
    assert CANARY not in repr((by_file, by_name))
    secret.write_text(" \n")
    with pytest.raises(CredentialError, match="put it into the file"):
        by_file.read_key()
