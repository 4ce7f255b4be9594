"""How the providers behind OpenAI's and Anthropic's wires differ: one row each, chosen by name or by host.

The comment above a row names the part of the provider's documentation, or of its users' reports, that it rests on.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

Wire = Literal["chat", "responses", "messages"]

ALL = frozenset({"*"})
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One provider. `hosts` is a pattern over the whole host name; without one it is chosen by name only.

    `limit` names the parameter that caps an answer. `usage` says how token counts in a stream are asked for: by
    `stream_options`, or not at all. `key_header` carries the key, bare unless it is `authorization`. `replay` lists
    the opaque fields of an answer that go back to the model it came from. `must_think` is the field that every
    answer in a history has to have, whoever gave it, for the models that match `thinkers`; `filler` stands where
    nothing is known. `foreign_call` is added to calls that carry nothing of this provider's own. `call_id` is the
    form of a call's id on the wire. `item_ids`: reasoning items go back with their ids. `placed`: the path depends on
    the model and a version. `extra` are fields of every
    request, `extra_for` those for models whose name matches. `prices` is the provider's name in the price library,
    where its address does not tell.
    """

    name: str
    wire: Wire = "chat"
    hosts: str | None = None
    limit: str = "max_tokens"
    usage: Literal["stream_options", "none"] = "stream_options"
    key_header: str = "authorization"
    replay: frozenset[str] = ALL
    must_think: str | None = None
    thinkers: str = ""
    filler: str = "."
    foreign_call: dict[str, Any] | None = None
    call_id: Literal["any", "nine"] = "any"
    item_ids: bool = False
    extra: dict[str, Any] | None = None
    extra_for: tuple[tuple[str, dict[str, Any]], ...] = ()
    prices: str | None = None
    placed: bool = False

    def extras(self, model: str) -> dict[str, Any]:
        found = dict(self.extra or {})
        for pattern, fields in self.extra_for:
            if re.search(pattern, model):
                found |= fields
        return found

    def replays(self, field: str) -> bool:
        return self.replay is ALL or field in self.replay

    def thinks(self, model: str) -> bool:
        return self.must_think is not None and re.search(self.thinkers, model) is not None


GENERIC = Profile(name="openai")

PROFILES: tuple[Profile, ...] = (
    # OpenAI API reference, chat: max_tokens is deprecated and refused by reasoning models.
    Profile(name="openai", hosts=r"([a-z]+\.)?api\.openai\.com", limit="max_completion_tokens", prices="openai"),
    # Anthropic API reference, messages: authentication by x-api-key.
    Profile(name="anthropic", wire="messages", hosts=r"api\.anthropic\.com", key_header="x-api-key"),
    # OpenRouter docs, usage accounting: cost comes with every answer now, older gateways want to be asked; prompt
    # caching: one mark at the top for Claude, set by itself for others; reasoning: details go back unchanged.
    Profile(
        name="openrouter",
        hosts=r"(.+\.)?openrouter\.ai",
        extra={"usage": {"include": True}},
        extra_for=((r"^~?anthropic/", {"cache_control": {"type": "ephemeral"}}),),
        prices="openrouter",
    ),
    # Gemini API docs, OpenAI compatibility and thought signatures: signatures ride on the calls and must come back; a
    # call that another model made has none, for which there is a documented stand-in.
    Profile(
        name="gemini",
        hosts=r"generativelanguage\.googleapis\.com|(.+-)?aiplatform\.googleapis\.com",
        foreign_call={"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}},
        prices="google",
    ),
    # Azure OpenAI reference: api-key header; v1 path, or a deployment's path with an api-version. Responses: items
    # of a project's endpoint go back with their ids.
    Profile(
        name="azure",
        hosts=r".+\.(openai\.azure\.com|services\.ai\.azure\.com|cognitiveservices\.azure\.com)",
        limit="max_completion_tokens",
        key_header="api-key",
        item_ids=True,
        placed=True,
        prices="azure",
    ),
    # Groq API reference: max_tokens is deprecated; reports: reasoning in messages is refused by most models there.
    Profile(name="groq", hosts=r"api\.groq\.com", limit="max_completion_tokens", replay=NONE, prices="groq"),
    # DeepSeek docs, thinking mode: reasoning_content must come back in all later requests once tools were called, and
    # is ignored else; reports: an answer without the field is refused then, also one that came from elsewhere.
    Profile(
        name="deepseek",
        hosts=r"api\.deepseek\.com",
        replay=frozenset({"reasoning_content"}),
        must_think="reasoning_content",
        prices="deepseek",
    ),
    # Mistral API reference and reports: unknown fields are refused, stream_options among them (usage comes anyway);
    # ids of calls are nine letters or digits; thinking is a part of the content.
    Profile(
        name="mistral",
        hosts=r"(api|codestral)\.mistral\.ai",
        usage="none",
        replay=frozenset({"content_thinking"}),
        call_id="nine",
        prices="mistral",
    ),
    # Ollama docs, OpenAI compatibility: max_tokens and stream_options.include_usage; fields it does not know are
    # ignored.
    Profile(name="ollama", hosts=r"(.+\.)?ollama\.com"),
    # vLLM docs, OpenAI-compatible server: extra fields are ignored, reasoning is read back by newer versions.
    Profile(name="vllm"),
    # xAI docs, chat (the older of its two wires): max_completion_tokens; reasoning is not read back.
    Profile(name="xai", hosts=r"([a-z0-9-]+\.)?api\.x\.ai", limit="max_completion_tokens", replay=NONE, prices="x-ai"),
    # Together docs, OpenAI compatibility.
    Profile(name="together", hosts=r"api\.together\.(xyz|ai)", prices="together"),
    # Moonshot docs, thinking models: reasoning_content comes back; reports: where it is missing or empty in an answer
    # with tool calls, the request is refused.
    Profile(
        name="moonshot",
        hosts=r"api\.moonshot\.(ai|cn)",
        replay=frozenset({"reasoning_content"}),
        must_think="reasoning_content",
        thinkers="kimi",
        prices="moonshotai",
    ),
)

_BY_NAME = {profile.name: profile for profile in PROFILES}
_ALIASES = {"google": "gemini", "x-ai": "xai", "moonshotai": "moonshot", "kimi": "moonshot"}
RESPONSES = "openai-responses"
# Every name that a run, an agent or a credential may give.
NAMES = frozenset({*_BY_NAME, *_ALIASES, RESPONSES})


def by_host(host: str) -> Profile | None:
    host = host.lower()
    return next((p for p in PROFILES if p.hosts and re.fullmatch(p.hosts, host)), None)


def choose(provider: str, host: str, port: int | None = None) -> Profile | None:
    """The profile for a provider's name at a host; None for a name that is not known.

    `openai`, which is what a run says that says nothing, leaves the choice to the host; any other name counts for
    itself, wherever the host is. `openai-responses` is OpenAI's newer wire with the ways of the host.
    """
    name = _ALIASES.get(provider, provider)
    at_host = by_host(host) or (_BY_NAME["ollama"] if port == 11434 else None)
    if name == "openai":
        return at_host or GENERIC
    if name == RESPONSES:
        basis = at_host if at_host is not None and at_host.wire == "chat" else GENERIC
        return replace(basis, wire="responses", limit="max_output_tokens", extra=None, extra_for=())
    return _BY_NAME.get(name)
