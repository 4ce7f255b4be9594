"""The catalog: where a price comes from, what is unknown, and that nothing is loaded or fetched without need."""

import socket
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from agents.errors import ConfigError
from agents.messages import Usage
from agents.providers import catalog, connect
from agents.providers.prices import Price, look_up
from agents.spec import ModelSpec

OPENAI, ANTHROPIC, LOCAL = "https://api.openai.com/v1", "https://api.anthropic.com/v1", "http://127.0.0.1:9/v1"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "models.toml"
    monkeypatch.setenv("MODEL_CATALOG", str(path))
    return path


def test_importing_the_loop_loads_no_price_list() -> None:
    code = (
        "import sys, agents, agents.providers; print(any('genai_prices' in m or m == 'pydantic' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_local_model_needs_no_price_list_either() -> None:
    code = (
        "import sys; from agents.providers import catalog, connect; from agents.spec import ModelSpec\n"
        "for model in ('m', 'tour'):\n"
        "    connect(ModelSpec(model=model, base_url='http://127.0.0.1:9/v1'), None)\n"
        "    print(catalog.price(model, 'http://127.0.0.1:9/v1') is None, catalog.window(model, 'http://localhost/v1'))\n"
        "print(any('genai_prices' in m for m in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert out == "True None\nFalse None\nFalse\n"


def test_no_question_to_the_catalog_opens_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert catalog.price("gpt-5", OPENAI) is not None
    assert catalog.window("gpt-5", OPENAI) == 400_000


def test_a_price_has_the_version_of_the_table_behind_it() -> None:
    price = catalog.price("claude-opus-4-5", ANTHROPIC)
    assert price is not None
    assert price.version.startswith("genai-prices ")
    assert (price.input, price.output) == (Decimal(5), Decimal(25))
    assert (price.cache_read, price.cache_write) == (Decimal("0.5"), Decimal("6.25"))
    drill = catalog.price("tour", LOCAL)
    assert drill is not None
    assert drill.version == "drill"


def test_the_same_model_costs_something_else_at_another_host_or_nothing_that_is_known() -> None:
    assert catalog.price("openai/gpt-oss-120b", "https://api.groq.com/openai/v1") is not None
    for elsewhere in ("https://gateway.example.com/v1", LOCAL, "https://api.openai.com.example.net/v1"):
        assert catalog.price("gpt-5", elsewhere) is None


@pytest.mark.case("A7-06")
def test_a_model_that_is_not_in_the_table_has_no_price_instead_of_none_to_pay() -> None:
    assert catalog.price("new-model-x", OPENAI) is None
    assert catalog.price("gpt-4.1", OPENAI) is not None
    assert catalog.price("gpt-4-1", OPENAI) is None
    assert (catalog.window("new-model-x", OPENAI), catalog.output_cap("new-model-x")) == (None, None)


@pytest.mark.case("A7-06")
def test_a_local_model_is_free_only_when_the_operator_says_so(table: Path) -> None:
    assert look_up("llama", url=LOCAL).price is None
    table.write_text(
        '[[model]]\nname = "llama*"\nbase_url = "http://127.0.0.1:9/v1"\nprice = { input = 0, output = 0 }\n'
    )
    price = catalog.price("llama-70b", LOCAL + "/")
    assert price is not None
    assert price.of(Usage(input=10**6, output=10**6)) == "0"
    assert catalog.price("llama-70b", "http://127.0.0.1:8/v1") is None


def test_the_operators_table_counts_before_all_others_and_for_what_it_says_only(table: Path) -> None:
    table.write_text(
        '[[model]]\nname = "gpt-5"\nversion = "contract 7"\noutput_cap = 9000\n'
        'price = { input = "1.00", output = "2.00", cache_read = "0.10" }\n\n[[model]]\nname = "tour"\nwindow = 16384\n'
    )
    price = catalog.price("gpt-5", OPENAI)
    assert price is not None
    assert (price.of(Usage(input=10**6, cache_read=10**6, cache_write=10**6)), price.version) == ("2.1", "contract 7")
    assert (catalog.output_cap("gpt-5"), catalog.window("gpt-5", OPENAI)) == (9000, 400_000)
    assert catalog.window("tour") == 16384
    drill = catalog.price("tour", LOCAL)
    assert drill is not None
    assert drill.version == "drill"


def test_a_changed_table_counts_at_once(table: Path) -> None:
    import os

    for number, window in enumerate((1000, 2000)):
        table.write_text(f'[[model]]\nname = "m"\nwindow = {window}\n')
        os.utime(table, ns=(number, number))
        assert catalog.window("m") == window


@pytest.mark.parametrize(
    "text",
    [
        "[[model]\n",
        "model = 1\n",
        "[[model]]\nwindow = 5\n",
        '[[model]]\nname = "m"\nwindow = "5"\n',
        '[[model]]\nname = "m"\nwindow = 0\n',
        '[[model]]\nname = "m"\nprise = 1\n',
        '[[model]]\nname = "m"\nprice = { input = 1 }\n',
        '[[model]]\nname = "m"\nprice = { input = 1, output = -1 }\n',
        '[[model]]\nname = "m"\nprice = { input = "nan", output = 1 }\n',
        '[[model]]\nname = "m"\nprice = { input = 1, output = 1, outptu = 1 }\n',
    ],
)
def test_a_table_out_of_form_is_refused_before_a_run_is_charged_wrongly(table: Path, text: str) -> None:
    table.write_text(text)
    for ask in (lambda: catalog.price("m", LOCAL), lambda: connect(ModelSpec(model="m", base_url=LOCAL), None)):
        with pytest.raises(ConfigError) as caught:
            ask()
        assert caught.value.kind == "bad_model_catalog"
        assert str(table) in caught.value.message


def test_a_table_that_is_not_there_is_told(table: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        catalog.window("m")


def test_long_prompts_cost_more_where_the_provider_says_so() -> None:
    price = catalog.price("gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai")
    assert price is not None
    assert price.of(Usage(input=200_000)) == "0.25"
    assert price.of(Usage(input=150_000, cache_read=50_001, output=1000)) == "0.40250025"


def test_tiers_are_chosen_by_the_whole_prompt() -> None:
    def at(input_: str) -> Price:
        zero = Decimal(0)
        return Price(input=Decimal(input_), output=zero, cache_read=zero, cache_write=zero, version="t")

    price = Price(
        input=Decimal(1), output=Decimal(0), cache_read=Decimal(0), cache_write=Decimal(0), version="t",
        above=((100, at("2")), (1000, at("3"))),
    )  # fmt: skip
    costs = [price.of(Usage(input=10, cache_read=rest)) for rest in (90, 91, 990, 991)]
    assert costs == ["0.00001", "0.00002", "0.00002", "0.00003"]


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [
        ("claude-opus-4-5-20251101", 200_000, 64_000),
        ("anthropic/claude-sonnet-4.6", 1_000_000, 128_000),
        ("claude-opus-5-5", 1_000_000, 128_000),
        ("gpt-4.1-mini", 1_047_576, 32_768),
        ("gpt-4o-2024-08-06", 128_000, 16_384),
        ("openai/gpt-5-mini", 400_000, 128_000),
        ("gemini-2.5-flash", 1_048_576, 65_536),
        ("gpt-5-anything", None, None),
    ],
)
def test_windows_and_caps_go_by_the_name(model: str, window: int | None, output: int | None) -> None:
    assert (catalog.window(model), catalog.output_cap(model)) == (window, output)
