"""Closes an attempt: the answer with its usage and cost, or the reason why it is none."""

import httpx

from agents.errors import Spent
from agents.messages import AssistantMessage
from agents.ports import ChatAnswer
from agents.providers.profiles import Profile
from agents.providers.stream import Broken


def headers(profile: Profile, key: str | None) -> dict[str, str]:
    """The headers of every request to a provider."""
    found = {"content-type": "application/json", "accept": "text/event-stream, application/json;q=0.9"}
    found |= {"accept-encoding": "identity", "user-agent": "pilothouse"}
    if key:
        found[profile.key_header] = f"Bearer {key}" if profile.key_header == "authorization" else key
    return found


def origin_of(url: httpx.URL, path: str, model: str) -> str:
    """Who gave an answer: reasoning and signatures mean something to the same model at the same place only."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}{url.path.removesuffix(path)} {model}"


def answer(
    message: AssistantMessage, *, spent: Spent, finish_reason: str | None, ttft_ms: float | None, cut: bool
) -> ChatAnswer:
    """Raises Broken for an empty one."""
    if not message.tool_calls and not message.text.strip():
        why = "the output limit was reached before any text" if cut else f"finish reason {finish_reason}"
        raise Broken("malformed_response", f"an empty answer: no text and no tool call ({why})")
    return ChatAnswer(
        message=message,
        usage=spent.usage,
        cost_usd=spent.cost_usd,
        cost_source=spent.cost_source,
        price_version=spent.price_version,
        estimated=spent.estimated,
        usage_notes=spent.notes,
        finish_reason=finish_reason,
        ttft_ms=ttft_ms,
        cut=cut,
    )
