"""Closes an attempt: the answer with its usage and cost, or the reason why it is none."""

import httpx

from agents.messages import AssistantMessage, Usage
from agents.ports import ChatAnswer
from agents.providers.catalog import Price
from agents.providers.stream import Broken


def origin_of(url: httpx.URL, path: str, model: str) -> str:
    """Who gave an answer: reasoning and signatures mean something to the same model at the same place only."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}{url.path.removesuffix(path)} {model}"


def answer(
    message: AssistantMessage,
    *,
    usage: Usage | None,
    reported: str | None,
    price: Price | None,
    finish_reason: str | None,
    ttft_ms: float | None,
    cut: bool,
) -> ChatAnswer:
    """`reported` is the cost that the provider named itself; it counts before our table. Raises Broken if empty."""
    if not message.tool_calls and not message.text.strip():
        why = "the output limit was reached before any text" if cut else f"finish reason {finish_reason}"
        raise Broken("malformed_response", f"an empty answer: no text and no tool call ({why})")
    cost, source = reported, "reported"
    if cost is None and usage is not None and price is not None:
        cost, source = price.of(usage), "price_table"
    return ChatAnswer(
        message=message,
        usage=usage,
        cost_usd=cost,
        cost_source=source if cost is not None else "unknown",
        finish_reason=finish_reason,
        ttft_ms=ttft_ms,
        cut=cut,
    )
