"""`invoice-timeout-*`: a lookup that always times out, and models that insist on it, each with a spelling of its own.

They go on for ever unless something stops them; only `gives-up` takes a refusal for an answer.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agents.drill.script import Asked, Conversation, Reply, Scenario, Step
from agents.drill.tools import GetInvoice

FAMILY = "invoice-timeout"
TOOL = GetInvoice.spec.name
# What is asked next, from what was asked so far.
Spelling = Callable[[list[Step]], Mapping[str, Any]]


def _in_turn(*spellings: Mapping[str, Any]) -> Spelling:
    return lambda asked: spellings[len(asked) % len(spellings)]


def _padded(asked: list[Step]) -> Mapping[str, Any]:
    return {"invoice_id": "INV-100" + " " * len(asked), "currency": "EUR"}


def _numbered(asked: list[Step]) -> Mapping[str, Any]:
    return {"invoice_id": "INV-100", "currency": "EUR", "request_id": f"req-{0x7F3A + 0x9E5 * len(asked):08x}"}


def _suffixed(asked: list[Step]) -> Mapping[str, Any]:
    """One more suffix for each refusal."""
    refusals = sum(step.blocked for step in asked)
    return {"invoice_id": f"INV-100-{refusals}" if refusals else "INV-100", "currency": "EUR"}


_EXACT = {"invoice_id": "INV-100", "currency": "EUR"}
VARIANTS: Mapping[str, Spelling] = {
    "exact": _in_turn(_EXACT),
    "key-order": _in_turn(_EXACT, {"currency": "EUR", "invoice_id": "INV-100"}),
    "case-alternation": _in_turn(_EXACT, {"invoice_id": "inv-100", "currency": "eur"}),
    "trailing-blanks": _padded,
    "fresh-request-id": _numbered,
    "number-or-text": _in_turn({"invoice_id": 100, "currency": "EUR"}, {"invoice_id": "100", "currency": "EUR"}),
    "two-ids": _in_turn(_EXACT, {"invoice_id": "INV-101", "currency": "EUR"}),
    "suffix-tweaks": _suffixed,
    "gives-up": _in_turn(_EXACT),
}


def _play(spelling: Spelling, gives_up: bool, conversation: Conversation) -> Reply:
    asked = conversation.done(TOOL)
    last = asked[-1] if asked else None
    if last is None:
        text = "I look the invoice up."
    elif last.blocked and gives_up:
        return Reply(
            text=f"I could not read the invoice: the billing service timed out {len(asked) - 1} times, and I was told "
            "not to try again. Whether it is paid is unknown."
        )
    elif last.blocked:
        text = "It was not run, but without the invoice I cannot answer. I try again."
    elif last.unchanged:
        text = "Still nothing. It must come back at some point; I ask once more."
    else:
        text = "The billing service timed out. That may pass, so I try again."
    return Reply(text=text, calls=(Asked(name=TOOL, args=spelling(asked)),))


def _scenario(variant: str, spelling: Spelling) -> Scenario:
    return Scenario(
        name=f"{FAMILY}-{variant}",
        kind="loop",
        task="Is invoice INV-100 paid? Look it up.",
        goal="whether invoice INV-100 is paid",
        play=lambda conversation: _play(spelling, variant == "gives-up", conversation),
        own_tools=lambda: (GetInvoice(),),
    )


INVOICES = tuple(_scenario(variant, spelling) for variant, spelling in VARIANTS.items())
