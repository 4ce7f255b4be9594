"""The wire to the models: `connect` gives a ChatModel for a model's specification."""

from agents.errors import ConfigError
from agents.policy.known_secrets import know
from agents.ports import ChatModel
from agents.providers.anthropic import AnthropicChat
from agents.providers.http import DEFAULT_STALLS, Stalls, base_address, close
from agents.providers.openai import OpenAIChat
from agents.providers.places import place
from agents.providers.profiles import NAMES, choose
from agents.providers.responses import ResponsesChat
from agents.spec import ModelSpec

__all__ = ["DEFAULT_STALLS", "NAMES", "Stalls", "close", "connect"]


def connect(spec: ModelSpec, api_key: str | None, *, stalls: Stalls = DEFAULT_STALLS) -> ChatModel:
    """A model that can be asked; opens no socket yet. From now on this process hides its key in all that it makes safe.

    The provider `openai` means whatever speaks at the host; every other name in NAMES means itself. Raises
    ConfigError: `unknown_provider`, `bad_base_url`, `bad_model_catalog`, or `bad_api_key` for a key that no header can
    carry.
    """
    base = base_address(spec.base_url)
    key = (api_key or "").strip() or None
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError("bad_api_key", "the API key holds characters that no HTTP header can carry; copy it again")
    know(key)
    profile = choose(spec.provider, base.host, base.port)
    if profile is None:
        known = ", ".join(sorted(NAMES))
        raise ConfigError("unknown_provider", f"provider {spec.provider!r:.60} is not known; use one of {known}")
    url = place(profile, base, spec.model)
    match profile.wire:
        case "chat":
            return OpenAIChat(spec, url, key, stalls, profile)
        case "responses":
            return ResponsesChat(spec, url, key, stalls, profile)
        case "messages":
            return AnthropicChat(spec, url, key, stalls, profile)
