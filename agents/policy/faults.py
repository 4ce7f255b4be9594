"""What went wrong in one attempt at the model, and what may be done about it, judged from what it left on the wire.

Evidence, best first: our own abort; what is innermost in the body; a provider's own codes; codes that mean one thing
everywhere; the sentence; codes that are found on everything; the status; how full the window was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents.errors import ClassifiedError, WireEvidence
from agents.policy import fault_answer, fault_codes
from agents.policy.fault_actions import actions
from agents.policy.fault_body import Said, read
from agents.policy.fault_heard import Found, Heard, hearings
from agents.policy.fault_rules import DEFINITE, VAGUE, first
from agents.policy.fault_waits import retry_after

__all__ = ["ClassifiedError", "ErrorSample", "classify", "known", "retry_after", "sample_of"]

_BY_STATUS = {
    400: "format_error", 401: "auth", 402: "billing", 403: "permission", 404: "unknown", 405: "format_error",
    406: "format_error", 408: "timeout", 410: "model_not_found", 412: "format_error", 413: "payload_too_large",
    415: "format_error", 421: "server_error", 422: "format_error", 424: "server_error", 425: "overloaded",
    429: "rate_limit", 431: "payload_too_large", 451: "permission", 499: "server_error", 503: "overloaded",
    504: "timeout", 522: "server_error", 524: "timeout", 529: "overloaded", 598: "timeout", 599: "timeout",
}  # fmt: skip
_FULL = 0.9
_HOUR_S = 3600.0
_GENERIC_WORDS = 5
_VAGUE_REASONS = ("format_error", "server_error")
_GATEWAYS = (
    "openrouter",
    "opencode",
    "vercel",
    "gateway",
    "pollinations",
    "requesty",
    "kilo",
    "poe",
    "nanogpt",
    "helicone",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSample:
    """What one failed attempt left; `context` is what we know besides: input_tokens, context_window, stream_phase."""

    provider: str = ""
    http_status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | None = ""
    transport_exception: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)


def sample_of(wire: WireEvidence, context: Mapping[str, Any] | None = None) -> ErrorSample:
    return ErrorSample(
        provider=wire.provider or "",
        http_status=wire.status,
        headers=wire.headers,
        body=wire.body,
        transport_exception=wire.transport,
        context=context or {},
    )


def classify(sample: ErrorSample, now: datetime | None = None) -> ClassifiedError:
    """Never raises. `now` is only a substitute for a missing `date` header."""
    body = sample.body
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    if sample.transport_exception:
        said = Said(sentences=[text] if text else [])
        found = _by_transport(sample.transport_exception, text)
    else:
        said = read(text)
        found = _judge(sample, text, said)
    return _permit(sample, found, said, now)


def known(reason: str, sample: ErrorSample, evidence: str, now: datetime | None = None) -> ClassifiedError:
    """The same for a failure whose reason is plain from how the answer was put together."""
    return _permit(sample, Found(reason=reason, evidence=evidence), Said(), now)


def _permit(sample: ErrorSample, found: Found, said: Said, now: datetime | None) -> ClassifiedError:
    allowed = actions(found.reason, found.kind)
    wait = retry_after(sample.headers, said, now=now) if allowed.waits else None
    if found.kind == "daily" and wait is not None and wait < _HOUR_S:
        # A generic hint of seconds does not shorten a day.
        wait = None
    return ClassifiedError(
        reason=found.reason,
        retryable=allowed.retryable,
        should_compress=allowed.compress,
        should_rotate_credential=allowed.rotate,
        should_fallback_model=allowed.fallback,
        retry_after_s=wait,
        evidence=_evidence(sample, found),
        said=(said.message or next(iter(said.sentences), "")).strip()[:2000],
    )


def _evidence(sample: ErrorSample, found: Found) -> str:
    where = f" at {sample.provider}" if sample.provider else ""
    status = sample.http_status
    over = f", over status {status}" if status is not None and not found.evidence.startswith("status") else ""
    return f"{found.evidence}{where}{over}"


_TIMEOUTS = ("Timeout", "TimeoutError", "TimeoutException")
_UNREADABLE = ("JSONDecodeError", "UnicodeDecodeError")


def _by_transport(name: str, text: str) -> Found:
    if name.endswith(("CancelledError", "Cancelled")):
        return Found(reason="cancelled", evidence="our own side stopped")
    if name.endswith(_TIMEOUTS):
        return Found(reason="timeout", evidence=f"exception {name}")
    if name.endswith(_UNREADABLE):
        return Found(reason="malformed_response", evidence=f"exception {name}")
    if (text and "certificate" in text.lower()) or name.endswith("CertVerificationError"):
        return Found(
            reason="connection", kind="certificate", evidence=f"exception {name}: the certificate does not verify"
        )
    return Found(reason="connection", evidence=f"exception {name}")


def _judge(sample: ErrorSample, text: str, said: Said) -> Found:
    outer = sample.http_status or 0
    # A status named inside counts more: the box around it only relays.
    status = said.statuses[0] if said.statuses else outer
    if _is_page(text):
        return _by_page(outer, text)
    codes = _codes(sample, said)
    provider = fault_codes.family(sample.provider, *said.hosts)
    if (found := _by_provider(provider, codes)) is not None:
        return _whose(sample, said, found, None)
    if outer < 400 and (verdict := fault_answer.judge(said, sample.context)) is not None:
        return Found(reason=verdict.reason, evidence=verdict.evidence)
    if not codes and not said.sentences:
        return _by_status(outer or status, sample, "", found_nothing=True, is_error=said.is_error)
    return _weigh(sample, said, codes, provider, status)


def _weigh(sample: ErrorSample, said: Said, codes: list[str], provider: str, status: int) -> Found:
    """Codes and sentences against each other, what is definite before what is said about everything."""
    strong = _by_table(codes, fault_codes.STRONG)
    weak = _by_table(codes, fault_codes.WEAK)
    before = Heard(
        raw=said.text, provider=provider, status=status, codes=frozenset(codes), params=tuple(said.params),
        quotas=tuple(said.quotas), context=sample.context,
    )  # fmt: skip
    heard = before
    for heard in hearings(before):
        found = first(DEFINITE, heard)
        if strong is not None and not _overruled(strong, found):
            found = strong
        if found is not None:
            return _whose(sample, said, found, heard)
    if weak is not None and weak.reason not in _VAGUE_REASONS:
        return _whose(sample, said, weak, heard)
    is_short = len(heard.text.split()) <= _GENERIC_WORDS
    vague = first(VAGUE, heard)
    if vague is not None and not is_short:
        return _whose(sample, said, vague, heard)
    fallback = _by_status(status, sample, said.text, found_nothing=is_short)
    if fallback.reason != "context_overflow" and (weak is not None or status < 400 or fallback.reason == "unknown"):
        # A word or two, and a code or no status that means anything.
        fallback = vague or (weak if status != 404 else None) or fallback
    return _whose(sample, said, fallback, heard)


def _overruled(strong: Found, found: Found | None) -> bool:
    """A code is stale where the sentence names the parameter that is wrong."""
    if found is None:
        return False
    if strong.reason == "context_overflow":
        return found.kind == "output_cap" or found.kind == "single_request"
    return strong.reason == "payload_too_large" and found.reason in ("context_overflow", "payload_too_large")


def _codes(sample: ErrorSample, said: Said) -> list[str]:
    codes = [fault_codes.normal(code) for code in said.codes]
    for name, value in sample.headers.items():
        if name.lower() in ("x-amzn-errortype", "x-ms-error-code", "x-error-code"):
            codes.append(fault_codes.normal(str(value).split(":")[0].split("#")[-1]))
    return [code for code in codes if code]


def _by_provider(provider: str, codes: list[str]) -> Found | None:
    table = fault_codes.BY_PROVIDER.get(provider)
    for code in codes if table else ():
        reason = table.get(code) if table else None
        if reason and reason != "format_error":
            return Found(reason=reason, evidence=f"matched code {code}")
    return None


_KINDS = {"single_request": "payload_too_large", "image": "payload_too_large", "cold": "overloaded"}


def _by_table(codes: list[str], table: tuple[tuple[str, str], ...]) -> Found | None:
    vague = None
    for code in codes:
        if reason := fault_codes.meaning(code, table):
            kind = reason if reason in _KINDS or reason == "quota" else ""
            reason = "rate_limit" if reason == "quota" else _KINDS.get(reason, reason)
            found = Found(reason=reason, kind=kind, evidence=f"matched code {code}")
            if reason not in _VAGUE_REASONS:
                return found
            vague = vague or found
    return vague


def _whose(sample: ErrorSample, said: Said, found: Found, heard: Heard | None) -> Found:
    """Limits of a pool that is not ours, and failures behind a gateway, permit something else."""
    gateway = any(part in sample.provider.lower() for part in _GATEWAYS)
    relayed = gateway and (said.is_wrapped or "error from provider" in said.text.lower() or bool(said.hosts))
    shared = heard is not None and heard.has("shared")
    if found.reason == "rate_limit" and (shared or (relayed and not _is_ours(said))):
        return Found(reason=found.reason, kind="shared", evidence=f"{found.evidence}; the pool is shared")
    if found.reason in ("billing", "auth") and relayed and said.is_wrapped:
        return Found(reason=found.reason, kind="shared", evidence=f"{found.evidence}; the account is the gateway's own")
    if found.reason == "server_error" and gateway and not found.kind and "provider returned error" in said.text.lower():
        return Found(reason=found.reason, kind="gateway", evidence=found.evidence)
    return found


def _is_ours(said: Said) -> bool:
    return any(code.startswith("openrouter") for code in said.codes)


def _by_status(status: int, sample: ErrorSample, raw: str, *, found_nothing: bool, is_error: bool = False) -> Found:
    if status in (400, 413) and found_nothing and (share := _share(sample.context)) is not None and share >= _FULL:
        return Found(
            reason="context_overflow", evidence=f"status {status} without a diagnosis, the window {share:.0%} full"
        )
    if status == 404:
        if "model" in raw.lower():
            return Found(reason="model_not_found", evidence="status 404 about a model")
        return Found(reason="unknown", kind="not_found", evidence="status 404")
    if status == 402 and any(name.lower() == "retry-after" for name in sample.headers):
        return Found(reason="rate_limit", evidence="status 402 with a Retry-After")
    if status in _BY_STATUS:
        return Found(reason=_BY_STATUS[status], evidence=f"status {status}")
    if 500 <= status < 600:
        return Found(reason="server_error", evidence=f"status {status}")
    if 300 <= status < 400:
        return Found(reason="model_not_found", evidence=f"status {status}: the address redirects")
    if 200 <= status < 300 and is_error and not raw:
        return Found(reason="unknown", evidence=f"status {status} with an error that says nothing")
    if 200 <= status < 300:
        reason = "server_error" if raw else "malformed_response"
        return Found(
            reason=reason, evidence=f"status {status} with " + ("an error inside" if raw else "nothing usable")
        )
    return Found(reason="server_error" if raw and not status else "unknown", evidence="nothing to go by")


def _share(context: Mapping[str, Any]) -> float | None:
    tokens, window = context.get("input_tokens"), context.get("context_window")
    if isinstance(tokens, int | float) and isinstance(window, int | float) and window > 0:
        return tokens / window
    return None


def _is_page(text: str) -> bool:
    head = text.lstrip()[:200].lower()
    return head.startswith(("<!doctype", "<html", "<head", "<?xml", "<center", "<h1", "<body", "<title"))


def _by_page(status: int, text: str) -> Found:
    """A page of a box in between follows its status; under 200 it is no answer."""
    if 200 <= status < 400:
        return Found(reason="malformed_response", kind="page", evidence=f"status {status} with a page of HTML")
    if status == 401:
        return Found(reason="auth", evidence="status 401 with a page of HTML")
    lower = text[:4000].lower()
    if status in (400, 403, 429, 503) and any(mark in lower for mark in _CHALLENGES):
        return Found(reason="permission", evidence=f"status {status} with a page that blocks or checks the client")
    found = _by_status(status, ErrorSample(), "", found_nothing=True)
    return Found(reason=found.reason, kind=found.kind, evidence=f"status {status} with a page of HTML")


_CHALLENGES = (
    "just a moment", "cf-chl", "challenge-platform", "you have been blocked", "attention required", "captcha",
    "checking your browser", "enable javascript and cookies", "access denied", "error 1020",
)  # fmt: skip
