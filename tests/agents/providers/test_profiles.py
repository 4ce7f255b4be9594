"""How providers differ: chosen by name or host, and each asked in its own way."""

from typing import Any

import orjson
import pytest

from agents.errors import ConfigError, ModelError
from agents.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agents.ports import ChatModel, ChatRequest
from agents.providers import NAMES, connect
from agents.providers.profiles import choose
from agents.spec import ModelSpec
from tests.agents.providers.scripted import DONE, Play, chunk, event, provider

ANSWER = chunk({"content": "hi"}, "stop") + DONE
REFUSED = b"HTTP/1.1 422 Unprocessable\r\ncontent-type: application/json\r\n"


def model_of(kind: str, base_url: str = "http://127.0.0.1/v1", name: str = "m", key: str | None = None) -> ChatModel:
    return connect(ModelSpec(model=name, base_url=base_url, provider=kind, max_output_tokens=100), key)


async def sent_by(kind: str, *, name: str = "m", path: str = "/v1", key: str = "sk") -> tuple[bytes, dict[str, Any]]:
    """Head and body of one request, as a server hears it that the provider's name was given for."""
    async with provider(Play([ANSWER])) as served:
        model = model_of(kind, f"http://127.0.0.1:{served.port}{path}", name, key)
        await model.ask(ChatRequest(parts=[b'{"role":"user","content":"go"}'], tools=None), lambda text: None)
        return served.heard[0].head, served.heard[0].json


def said(model: ChatModel, **fields: Any) -> dict[str, Any]:
    """An answer with one call, as it goes back to the model that gave it."""
    call = ToolCall(call="c", wire_id="call_1234567890", name="f", args="{}")
    given = {"text": "", "tool_calls": (call,), "origin": model.origin, **fields}  # type: ignore[attr-defined]
    return orjson.loads(model.encode_message(AssistantMessage(**given)))  # type: ignore[no-any-return]


# --- which one ---


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
        ("https://r.openai.azure.com/openai/v1", "azure"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://api.x.ai/v1", "xai"),
        ("https://api.together.xyz/v1", "together"),
        ("https://api.moonshot.cn/v1", "moonshot"),
        ("https://api.anthropic.com/v1", "anthropic"),
        ("http://localhost:11434/v1", "ollama"),
        ("https://openrouter.ai.elsewhere.net/v1", "openai"),
        ("https://gateway.example.com/v1", "openai"),
    ],
)
def test_a_run_that_names_no_provider_gets_the_one_at_the_host(base_url: str, name: str) -> None:
    assert model_of("openai", base_url).provider == name


def test_every_name_can_be_connected_to_and_any_other_is_refused_with_the_list() -> None:
    for name in NAMES:
        assert model_of(name).provider
    with pytest.raises(ConfigError, match="use one of anthropic, azure") as caught:
        model_of("acme")
    assert caught.value.kind == "unknown_provider"


def test_a_name_counts_for_itself_wherever_the_host_is() -> None:
    gateway = "https://gateway.example.com/v1"
    assert model_of("mistral", gateway).provider == "mistral"
    assert model_of("vllm", gateway).provider == "vllm"
    newer = choose("openai-responses", "r.openai.azure.com")
    assert newer is not None
    assert (newer.wire, newer.key_header, newer.limit) == ("responses", "api-key", "max_output_tokens")


# --- how it is asked ---


@pytest.mark.parametrize(
    ("kind", "limit", "usage"),
    [
        ("openai", "max_tokens", True),  # an unknown host: what most servers know
        ("azure", "max_completion_tokens", True),
        ("groq", "max_completion_tokens", True),
        ("xai", "max_completion_tokens", True),
        ("mistral", "max_tokens", False),
        ("ollama", "max_tokens", True),
        ("deepseek", "max_tokens", True),
    ],
)
async def test_limit_and_usage_are_asked_for_in_the_providers_words(kind: str, limit: str, usage: bool) -> None:
    _, body = await sent_by(kind)
    assert body[limit] == 100
    assert ("stream_options" in body) == usage


async def test_openrouter_is_asked_for_the_cost_and_for_claude_to_be_cached() -> None:
    _, plain = await sent_by("openrouter", name="openai/gpt-5")
    assert plain["usage"] == {"include": True}
    assert "cache_control" not in plain
    _, claude = await sent_by("openrouter", name="anthropic/claude-opus-4.5")
    assert claude["cache_control"] == {"type": "ephemeral"}


async def test_openrouter_tells_cost_keep_alives_and_errors_in_the_middle() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "cost": 0.0000275}
    whole = b": OPENROUTER PROCESSING\n\n" + chunk({"content": "hi"}, "stop") + event({"choices": [], "usage": usage})
    broken = {
        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
        "error": {"code": "server_error", "message": "Provider disconnected unexpectedly"},
    }
    async with provider(Play([whole + DONE]), Play([chunk({"content": "h"}) + event(broken) + DONE])) as served:
        model = model_of("openrouter", served.base_url)
        request = ChatRequest(parts=[], tools=None)
        answer = await model.ask(request, lambda text: None)
        with pytest.raises(ModelError, match="Provider disconnected") as caught:
            await model.ask(request, lambda text: None)
    assert (answer.cost_usd, answer.cost_source) == ("0.0000275", "reported")
    assert caught.value.kind == "server_error"


async def test_a_key_at_its_limit_is_told_as_a_matter_of_money() -> None:
    body = b'{"error":{"message":"Key limit exceeded (total limit). Manage it in your settings","code":402}}'
    async with provider(Play([body], head=b"HTTP/1.1 402 Payment Required\r\n")) as served:
        with pytest.raises(ModelError) as caught:
            await model_of("openrouter", served.base_url).ask(ChatRequest(parts=[], tools=None), lambda text: None)
    assert caught.value.kind == "billing"
    assert caught.value.spent is not None
    assert (caught.value.spent.cost_usd, caught.value.spent.cost_source) == ("0", "none")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("", b"/openai/v1/chat/completions"),
        ("/openai/v1", b"/openai/v1/chat/completions"),
        ("/openai/v1/", b"/openai/v1/chat/completions"),
        ("/openai/deployments/d", b"/openai/deployments/d/chat/completions?api-version=2024-10-21"),
        ("/openai/deployments/d?api-version=2025-01-01-preview",
         b"/openai/deployments/d/chat/completions?api-version=2025-01-01-preview"),
        ("?api-version=2024-06-01", b"/openai/deployments/m/chat/completions?api-version=2024-06-01"),
    ],
)  # fmt: skip
async def test_azure_gets_its_own_header_and_one_of_its_paths(path: str, asked: bytes) -> None:
    head, _ = await sent_by("azure", path=path)
    assert head.startswith(b"POST " + asked + b" ")
    assert b"\r\napi-key: sk\r\n" in head
    assert b"authorization" not in head.lower()


async def test_azure_speaks_the_newer_wire_too() -> None:
    base = "https://r.openai.azure.com"
    model = model_of("openai-responses", base, key="k")
    target = model._target  # type: ignore[attr-defined]
    assert str(target.url) == f"{base}/openai/v1/responses"
    assert target.headers["api-key"] == "k"


async def test_a_server_that_knows_only_the_older_limit_is_asked_again_with_it_but_not_for_a_limit_too_large() -> None:
    unknown = b'{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs"}]}'
    large = b'{"error":{"message":"max_completion_tokens is too large: 100. This model supports at most 50"}}'
    async with provider(Play([unknown], head=REFUSED), Play([ANSWER]), Play([large], head=REFUSED)) as served:
        model = model_of("groq", served.base_url)
        await model.ask(ChatRequest(parts=[], tools=None), lambda text: None)
        with pytest.raises(ModelError):
            await model_of("groq", served.base_url).ask(ChatRequest(parts=[], tools=None), lambda text: None)
        limits = [[name for name in heard.json if name.startswith("max")] for heard in served.heard]
    assert limits == [["max_completion_tokens"], ["max_tokens"], ["max_completion_tokens"]]


# --- what goes back ---


def test_reasoning_goes_back_where_it_must_and_stays_where_it_is_refused() -> None:
    kept = {"reasoning_content": "so that"}
    for kind in ("deepseek", "openai", "vllm", "ollama", "openrouter"):
        assert said(model_of(kind), opaque=kept)["reasoning_content"] == "so that"
    assert said(model_of("moonshot", name="kimi-k2-thinking"), opaque=kept)["reasoning_content"] == "so that"
    for kind in ("groq", "mistral", "xai"):
        assert "reasoning_content" not in said(model_of(kind), opaque=kept)


def test_an_answer_of_another_model_gets_the_thoughts_without_which_it_is_refused() -> None:
    deepseek = model_of("deepseek")
    foreign = said(deepseek, origin="elsewhere", opaque={"reasoning_content": "secret"})
    assert foreign["reasoning_content"] == "."
    assert "reasoning_content" not in said(model_of("moonshot", name="moonshot-v1-8k"))
    assert said(model_of("moonshot", name="kimi-k2.5"))["reasoning_content"] == "."


def test_mistral_gets_ids_of_nine_letters_the_same_in_call_and_result() -> None:
    mistral = model_of("mistral")
    call = said(mistral)["tool_calls"][0]["id"]
    result = ToolMessage(call="c", wire_id="call_1234567890", name="f", text="42")
    assert orjson.loads(mistral.encode_message(result))["tool_call_id"] == call
    assert (len(call), call.isalnum(), call.isascii()) == (9, True, True)
    kept = ToolMessage(call="c", wire_id="aB3dE6gH9", name="f", text="42")
    assert orjson.loads(mistral.encode_message(kept))["tool_call_id"] == "aB3dE6gH9"
    assert said(model_of("openai"))["tool_calls"][0]["id"] == "call_1234567890"


def test_gemini_gets_its_signature_back_and_a_stand_in_for_calls_of_others() -> None:
    gemini = model_of("gemini")
    signed = [{"extra_content": {"google": {"thought_signature": "c2ln"}}}]
    own = said(gemini, opaque={"call_fields": signed})["tool_calls"][0]
    assert own["extra_content"]["google"]["thought_signature"] == "c2ln"
    foreign = said(gemini, origin="elsewhere", opaque={"call_fields": signed})["tool_calls"][0]
    assert foreign["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"


def test_openrouters_signed_thoughts_are_not_said_twice() -> None:
    details = [{"type": "reasoning.text", "text": "so", "signature": "c2ln", "index": 0}]
    out = said(model_of("openrouter"), opaque={"reasoning": "so", "reasoning_details": details})
    assert out["reasoning_details"] == details
    assert "reasoning" not in out


def test_words_of_a_person_look_the_same_everywhere() -> None:
    for kind in NAMES - {"anthropic"}:
        assert orjson.loads(model_of(kind).encode_message(UserMessage(text="go"))) == {"role": "user", "content": "go"}
