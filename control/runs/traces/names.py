"""Names of others: providers as the GenAI conventions call them, and which ends of a run are faults."""

_PROVIDERS = {
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "deepseek": "deepseek",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "moonshot": "moonshot_ai",
}
FAULTS = frozenset({"failed", "lost", "tripped"})


def provider_name(ours: str) -> str:
    """The well-known name where there is one, else our own."""
    return _PROVIDERS.get(ours, ours or "unknown")
