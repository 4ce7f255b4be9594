"""Values are made safe once: storable, of whole characters, and without secrets."""

import json
import timeit
from time import process_time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.policy.redaction import cut, has_marker, make_safe, make_safe_value, merge

# Assembled, so that no scanner takes these for live keys.
OPENAI = "sk-" + "proj-4fK29xQvLm83TzPw61Ab"
ANTHROPIC = "sk-" + "ant-api03-Zz19Qk28LmPwXy77Vv_Rt"
AWS = "AKIA" + "Q3EXAMPLE7ZXCVBN"
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SLACK = "xoxb-" + "123456789012-abcdefGHIJKL"
GOOGLE = "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NSJ9.SflKxwRJSMeKKF2QT4fwpMeJf36"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAq1\nZ8ab+/c=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.case("A2-01")
def test_nul_and_controls_become_visible_and_are_counted() -> None:
    safe = make_safe("W\x00s\x00l\x00 \x07 tab\tline\r\n\x1b[0m")
    assert safe.text == "W␀s␀l␀ ␇ tab\tline\r\n\x1b[0m"
    assert safe.altered == {"nul": 3, "controls": 1}


@pytest.mark.case("A2-01")
def test_a_literal_backslash_u0000_is_left_alone() -> None:
    safe = make_safe(r"literal \u0000 and \x00")
    assert (safe.text, safe.altered) == (r"literal \u0000 and \x00", None)


@pytest.mark.case("A2-02")
def test_halves_of_characters_are_replaced_and_whole_pairs_kept() -> None:
    safe = make_safe("lone \ud83d, \ude00; pair 😀; pair in two pieces \ud83d" + "\ude00; reasoning \ud835")
    assert safe.text == "lone �, �; pair 😀; pair in two pieces 😀; reasoning �"
    assert safe.altered == {"surrogates": 3}


@pytest.mark.case("A2-02")
@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.integers(min_value=0, max_value=220))
def test_safe_text_survives_every_strict_layer_cut_or_not(text: str, limit: int) -> None:
    safe = make_safe(text).text
    short, _ = cut(safe, limit)
    for value in (safe, short):
        assert orjson.loads(orjson.dumps(value)) == value
        assert "\x00" not in value.encode().decode()
    assert make_safe(safe).text == safe


@pytest.mark.case("A2-02")
@given(st.integers(min_value=0, max_value=120))
def test_a_cut_never_leaves_half_a_pair_even_of_text_in_code_units(limit: int) -> None:
    units = "\ud83d\ude00" * 60
    short, was_cut = cut(units, limit)
    assert was_cut == (limit < len(units))
    assert make_safe(short).altered is None or limit >= len(units)


def test_a_cut_keeps_head_and_tail_within_the_limit_and_says_what_is_missing() -> None:
    short, was_cut = cut("HEAD" + "x" * 5000 + "TAIL", 400)
    assert was_cut
    assert len(short) <= 400
    assert short.startswith("HEAD")
    assert short.endswith("TAIL")
    assert "characters left out" in short


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (OPENAI, "api_key"),
        (ANTHROPIC, "api_key"),
        (AWS, "aws_key"),
        (GITHUB, "github_token"),
        (SLACK, "slack_token"),
        (GOOGLE, "google_key"),
        (JWT, "jwt"),
        (PEM, "private_key"),
        (PEM.replace("\n", "\\n"), "private_key"),
        ("curl -H 'Authorization: Bearer zk29XmQ8pLw71Tgh'", "authorization"),
        ("Authorization: Basic dXNlcjpwYXNz", "authorization"),
        ("bearer zk29XmQ8pLw71TghRr", "bearer"),
        ("postgres://app:s3cr3tpw@db:5432/x", "password"),
        ("DB_PASSWORD=postgres", "password"),
        ("password: hunter2", "password"),
        ("mysql --password=hunter2", "password"),
        ('config = {"client_secret": "zz top"}', "secret"),
        (r'{"body": "{\"apiKey\": \"q7\"}"}', "api_key"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPx", "api_key"),
        ("GET /v1?api_key=abc123def&page=2", "api_key"),
        ("Set-Cookie: session=abcdef123456; HttpOnly", "cookie"),
    ],
)
def test_secrets_leave_a_typed_marker(text: str, kind: str) -> None:
    safe = make_safe(f"before {text} after")
    assert safe.altered == {"redacted": {kind: 1}}
    assert f"[redacted:{kind}]" in safe.text
    assert safe.text.startswith("before ")
    assert has_marker(safe.text)
    assert make_safe(safe.text).text == safe.text


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096, token_count=17, tokenizer: bert4x",
        "password = os.environ['DB_PASSWORD']",
        "def login(user: str, password: str, token: str | None = None) -> None: ...",
        "token = next_token2(stream)",
        "token = lexer.tokens2",
        "PASSWORD=${DB_PASSWORD}",
        "api_key: <your key here>",
        "API_KEY=your-api-key-1",
        "PWD=/home/user1/work",
        "nextPageToken: CAoQAA1b2c3d4e5f",
        ".sk-loading-circle-animated-large { color: red }",
        "task-sk-1, risk-4, desk-12",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 0192f0c1-2b3c-7d4e-8f90-123456789abc",
        "tests pass: 12, keys: 4, key: value1",
        "http://user@host:80/a and git@github.com:x/y.git and postgres://postgres@127.0.0.1:5432/db",
        '{"token": "the", "password": null, "secret": ""}',
        "begin with -----BEGIN PRIVATE KEY----- in the file",
        "the bearer of this letter shall be internationally welcome",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert make_safe(text).text == text


def test_key_names_hide_values_at_any_depth_and_inside_strings() -> None:
    value = {
        "a": [{"Api-Key": "q", "n": 1}],
        "b": {"userPassword": "x y z"},
        "c": json.dumps({"secret": "s3"}),
        "pwd": 12,
    }
    safe = make_safe_value(value)
    assert safe.value == {
        "a": [{"Api-Key": "[redacted:api_key]", "n": 1}],
        "b": {"userPassword": "[redacted:password]"},
        "c": '{"secret": "[redacted:secret]"}',
        "pwd": "[redacted:password]",
    }
    assert safe.altered == {"redacted": {"api_key": 1, "password": 2, "secret": 1}}


def test_a_number_hidden_in_json_text_leaves_valid_json() -> None:
    assert json.loads(make_safe('{"password": 123456}').text) == {"password": "[redacted:password]"}


def test_numbers_that_json_has_not_become_text() -> None:
    safe = make_safe_value([float("nan"), float("inf"), 1.5])
    assert safe.value == ["nan", "inf", 1.5]
    assert safe.altered == {"numbers": 2}


def test_keys_are_made_safe_too() -> None:
    assert make_safe_value({"a\x00": {"\ud800": 1}}).value == {"a␀": {"�": 1}}


def test_a_value_nested_without_end_is_cut_off() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    assert (make_safe_value(value).altered or {}).get("too_deep") == 1


def test_markers_are_told_from_text_that_only_resembles_them() -> None:
    assert has_marker("x = '[redacted:api_key]'")
    assert not has_marker("[redacted] and [redacted:]")


def test_counts_of_several_alterations_add_up() -> None:
    assert merge({"nul": 1, "redacted": {"jwt": 1}}, None, {"nul": 2, "redacted": {"jwt": 1, "token": 1}}) == {
        "nul": 3,
        "redacted": {"jwt": 2, "token": 1},
    }
    assert merge(None, None) is None


def test_a_letter_that_grows_when_lowered_shifts_no_redaction() -> None:
    assert make_safe("İİİ password: hunter2 end").text == "İİİ password: [redacted:password] end"


@pytest.mark.parametrize(
    "piece",
    [
        *("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAA", "eyJ-", "eyJaaaaaaaaa.", "sk-", "xoxb-"),
        *("://a:", "://:@", "api_key=", "key=", "token:", 'secret="', "password='", "pwd\\\\", "bearer ", "cookie:a"),
        *("authorization: ", "authorization:bearer", "pass pass_", " \t", "a.b-", "${", "{{", "AKIA", "glpat-"),
    ],
)
def test_no_text_however_made_holds_up_the_worker(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    best = min(timeit.repeat(lambda: make_safe(text), timer=process_time, number=1, repeat=2))
    assert best < 1.5


def test_a_long_bare_value_is_hidden_to_its_end() -> None:
    assert make_safe("API_KEY=" + "a1B2" * 400 + " end").text == "API_KEY=[redacted:api_key] end"


def test_ordinary_text_costs_little() -> None:
    """About 4 us per KiB where this was written; the bound leaves room for a busy machine."""
    line = "2026-01-31 12:00:00 INFO request handled path=/api/v1/items status=200 https://example.com/a?b=1\n"
    text = line * 1000
    best = min(timeit.repeat(lambda: make_safe(text), timer=process_time, number=1, repeat=7))
    assert best / (len(text) / 1024) < 50e-6


@pytest.mark.parametrize("before", [*range(65_536 - len(GITHUB), 65_538), 131_071])
def test_a_secret_is_found_wherever_it_stands_in_a_long_text(before: int) -> None:
    safe = make_safe("." * (before - 1) + " " + GITHUB + " " + "." * 70_000)
    assert safe.altered == {"redacted": {"github_token": 1}}
    assert GITHUB[:12] not in safe.text
