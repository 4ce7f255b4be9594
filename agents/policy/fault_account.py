"""Rules about our account and the provider: money, limits, credentials, models, capacity, faults."""

import re

from agents.policy.fault_heard import Found, Heard


def region(heard: Heard) -> Found | None:
    return heard.says("region", "permission") if heard.has("region") else None


def limit_zero(heard: Heard) -> Found | None:
    if re.search(r"\blimit:\s*0\b(?![.,]?[0-9])", heard.raw) and heard.has("quota", "plan_quota"):
        return Found(reason="billing", kind="limit_0", evidence="the tier's limit is 0: there is no quota at all")
    return None


def held_quota(heard: Heard) -> Found | None:
    """Money that is only held by requests in flight comes back by itself."""
    if heard.has("hold") and (heard.status == 402 or heard.has("money")):
        return heard.says("hold", "rate_limit")
    return None


def quota_id(heard: Heard) -> Found | None:
    """Google names the violated quota; the longest window decides."""
    ids = " ".join(heard.quotas).lower()
    for part, kind in (("perday", "daily"), ("perhour", ""), ("perminute", ""), ("persecond", "")):
        if part in ids:
            return Found(
                reason="rate_limit", kind=kind, evidence=f"the violated quota is {part.replace('per', 'per ')}"
            )
    return None


def money(heard: Heard) -> Found | None:
    if heard.has("money"):
        if "free" in heard.families["money"] and heard.has("later", "reset") and heard.status == 429:
            return heard.says("later" if heard.has("later") else "reset", "rate_limit")
        if heard.status == 402 and heard.has("window", "reset") and not _asks_for_money(heard):
            return heard.says("window" if heard.has("window") else "reset", "rate_limit")
        return heard.says("money", "billing")
    if heard.has("advice") and not (heard.has("quota", "rate") and heard.has("window", "reset", "later")):
        return heard.says("advice", "billing")
    return _month(heard) if heard.has("quota", "rate") else None


def _month(heard: Heard) -> Found | None:
    """A calendar month is money; a cycle that the provider itself refreshes is a window."""
    if heard.has("window"):
        return None
    if heard.has("month"):
        return heard.says("month", "billing")
    return heard.says("cycle", "billing") if heard.has("cycle") and not heard.has("reset") else None


def _asks_for_money(heard: Heard) -> bool:
    return any(
        word in heard.text
        for word in (" balance", " credit", " top up", " recharge", " fund", " spend", " budget", " pay ")
    )


def plan_quota(heard: Heard) -> Found | None:
    """ "Exceeded your current quota, check your plan and billing": money, except where it is known to mean a rate."""
    if not heard.has("plan_quota"):
        return None
    is_rate = heard.provider in ("google", "dashscope") or "resource_exhausted" in heard.codes or heard.has("window")
    is_rate = (
        is_rate
        or "quota exceeded for metric" in heard.text
        or "generativelanguage" in heard.raw
        or "aliyun" in heard.raw
    )
    return heard.says("plan_quota", "rate_limit" if is_rate else "billing")


def credential(heard: Heard) -> Found | None:
    return heard.says("credential", "auth") if heard.has("credential") else None


def capacity(heard: Heard) -> Found | None:
    if heard.has("cold"):
        return heard.says("cold", "overloaded")
    if not heard.has("capacity"):
        return None
    if heard.has("rate") and heard.has("quota") and heard.has("window"):
        return None
    return heard.says("capacity", "overloaded")


def limits(heard: Heard) -> Found | None:
    if heard.status == 402 and heard.has("quota") and not _passes(heard):
        return heard.says("quota", "billing")
    for family in ("rate", "quota", "window", "reset"):
        if heard.has(family) and (family not in ("window", "reset") or heard.status in (402, 429)):
            return heard.says(family, "rate_limit")
    return None


def _passes(heard: Heard) -> bool:
    return heard.has("window", "reset", "later", "rate", "hold") or heard.has_wait


# "not available for your plan": it is there, but not for us.
_OURS = re.compile(
    r"\b(?:for|on|in|to|under|with|by) (?:your|this|the current|our) .*"
    r"(?:plan|subscri|tier|account|organi|team|project|key)"
)
_ABSENT = re.compile(r"not (?:exist|found)|unknown|doesnt exist|no such|not available|not a valid")


def missing_model(heard: Heard) -> Found | None:
    if not heard.has("missing_model"):
        return None
    denied = heard.families.get("permission", "")
    if any(word in denied for word in ("policy", "guardrail", "privacy", "retention")):
        return None
    if ("allowed" in denied or "permission" in denied) and not _ABSENT.search(heard.text):
        return None
    if _OURS.search(denied):
        return None
    if heard.status == 429 and heard.has("rate", "later", "shared"):
        return Found(reason="rate_limit", evidence=f'the text says "{heard.families["missing_model"][:80]}", for now')
    return heard.says("missing_model", "model_not_found")


def permission(heard: Heard) -> Found | None:
    return heard.says("permission", "permission") if heard.has("permission") else None


def form(heard: Heard) -> Found | None:
    """Under a 5xx only where a program's own check of its arguments speaks."""
    is_client = heard.status < 500 and heard.status != 429
    if heard.has("format") and (is_client or _CHECK.search(heard.raw)):
        return heard.says("format", "format_error")
    return None


_CHECK = re.compile(r"\b(?:ValueError|ValidationError|TypeError|validation error)\b")


def timeout(heard: Heard) -> Found | None:
    return heard.says("timeout", "timeout") if heard.has("timeout") and heard.status not in (502, 503) else None


def permanent(heard: Heard) -> Found | None:
    return heard.says("permanent", "server_error", "permanent") if heard.has("permanent") else None


def server(heard: Heard) -> Found | None:
    if (
        not heard.has("server")
        or heard.status in (503, 504, 524, 529)
        or (400 <= heard.status < 500 and heard.status not in (400, 408, 409, 424, 499))
    ):
        return None
    return heard.says("server", "server_error")
