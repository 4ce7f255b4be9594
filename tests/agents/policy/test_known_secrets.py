"""A key that a process holds is hidden by its value, in every form in which it can be carried away."""

import base64
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from agents.policy import known_secrets
from agents.policy.redaction import make_safe, make_safe_value
from agents.providers import connect
from agents.spec import ModelSpec

KEY = "c4n+ry/K3y=1"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    known_secrets.forget()
    yield
    known_secrets.forget()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.case("A6-07")
@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect key provided: {KEY}.",
        f"GET /v1?k={quote(KEY, safe='')}&x=1",
        "c4n%2Bry%2FK3y%3D1",
        *(f"Basic {encoded('u' * before + ':' + KEY + '!' * behind)}" for before in range(4) for behind in range(4)),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
    ],
)
def test_a_known_key_is_hidden_in_every_form(text: str):
    before = make_safe(text)
    known_secrets.know(KEY)
    safe = make_safe(text)
    assert "[redacted:api_key]" in safe.text and KEY not in safe.text and safe.text != before.text
    assert safe.altered and safe.altered["redacted"]["api_key"] >= 1
    assert make_safe(safe.text).text == safe.text, "once is enough"
    assert KEY not in str(make_safe_value({"a": [text]}).value)
    for letters in (encoded(KEY)[:-4], encoded("u:" + KEY)[4:-4]):
        assert letters[2:-2] not in safe.text


def test_a_key_is_known_as_soon_as_a_model_may_use_it():
    connect(ModelSpec(provider="openai", base_url="http://127.0.0.1:9/v1", model="m"), KEY)
    assert make_safe(f"it is {KEY}").text == "it is [redacted:api_key]"


def test_short_values_hide_no_words():
    for value in (None, "", "ollama", "x"):
        known_secrets.know(value)
    assert make_safe("ollama x none").text == "ollama x none"
