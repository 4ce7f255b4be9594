"""Cutting texts to what services take: by characters or by bytes, never in the middle of a character."""

from collections.abc import Sequence

from control.incidents.transports.ports import Message, Notice

_WORDS = {"trigger": "", "acknowledge": "Acknowledged: ", "resolve": "Resolved: ", "test": "Test: "}


def cut(text: str, most: int) -> str:
    """At most `most` characters, the last one an ellipsis if something is missing."""
    return text if len(text) <= most else text[: most - 1] + "…"


def cut_bytes(text: str, most: int) -> str:
    """At most `most` bytes of UTF-8."""
    raw = text.encode()
    return text if len(raw) <= most else raw[: most - 3].decode("utf-8", "ignore") + "…"


def headline(message: Message) -> str:
    """One line for all of it: what happened, or how many things did."""
    word = "Still open: " if message.reminder else _WORDS[message.action]
    first = message.notices[0]
    if len(message.notices) == 1:
        return f"{word}[{first.severity}] {first.title}"
    return f"{word}{len(message.notices)} incidents, gravest: [{first.severity}] {first.title}"


def plain(notice: Notice) -> str:
    """An incident in plain lines."""
    lines = [f"{notice.word} · {notice.severity} · {notice.state}", notice.title]
    if notice.summary:
        lines.append(notice.summary)
    lines += [f"  {name}: {value}" for name, value in notice.facts]
    if notice.next_step:
        lines.append(f"Next: {notice.next_step}")
    lines.append(f"Incident: {notice.url}")
    if notice.stop_url:
        lines.append(f"Stop the run: {notice.stop_url}")
    elif notice.run_url:
        lines.append(f"Run: {notice.run_url}")
    lines.append(f"Runbook: {notice.runbook_url}")
    return "\n".join(lines)


def gravest(notices: Sequence[Notice]) -> str:
    order = ("critical", "error", "warning", "info")
    return min((notice.severity for notice in notices), key=order.index)
