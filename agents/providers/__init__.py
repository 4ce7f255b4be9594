"""The wire to the models: `connect` gives a ChatModel for a model's specification."""

from agents.errors import ConfigError
from agents.ports import ChatModel
from agents.providers.anthropic import PATH as MESSAGES_PATH
from agents.providers.anthropic import AnthropicChat
from agents.providers.http import DEFAULT_STALLS, Stalls, base_address, close, endpoint
from agents.providers.openai import PATH as CHAT_PATH
from agents.providers.openai import OpenAIChat
from agents.spec import ModelSpec

__all__ = ["DEFAULT_STALLS", "Stalls", "close", "connect"]


def connect(spec: ModelSpec, api_key: str | None, *, stalls: Stalls = DEFAULT_STALLS) -> ChatModel:
    """A model that can be asked; opens no socket yet.

    Raises ConfigError: `unknown_provider`, `bad_base_url`, or `bad_api_key` for a key that no header can carry.
    """
    base = base_address(spec.base_url)
    key = (api_key or "").strip() or None
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError("bad_api_key", "the API key holds characters that no HTTP header can carry; copy it again")
    match spec.provider:
        case "openai":
            return OpenAIChat(spec, endpoint(base, CHAT_PATH), key, stalls)
        case "anthropic":
            return AnthropicChat(spec, endpoint(base, MESSAGES_PATH), key, stalls)
    raise ConfigError("unknown_provider", f"provider {spec.provider!r} is not known; use openai or anthropic")
