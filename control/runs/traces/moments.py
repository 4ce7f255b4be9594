"""What a span tells of the events within it: names, numbers and reasons, never a text that somebody wrote."""

from agents import kinds
from agents.events import Event

Told = tuple[str, dict[str, str | int | float | bool | list[str]]]


def moment_of(event: Event) -> Told | None:
    """The moment's name and attributes; None for events that are no moment of a span."""
    match event.data:
        case kinds.CallRetried() as body:
            error = body.error
            attributes: dict[str, str | int | float | bool | list[str]] = {
                "error.type": str(error.get("reason") or "unknown"),
                "pilothouse.attempt": body.attempt,
                "pilothouse.action": body.action,
                "pilothouse.wait_s": body.wait_s,
            }
            if isinstance(error.get("status"), int):
                attributes["http.response.status_code"] = error["status"]
            return "pilothouse.attempt_failed", attributes
        case kinds.RunWaiting(reason=reason):
            return event.kind, {"pilothouse.waiting_for": reason}
        case kinds.RunRequeued(why=why, epoch=epoch):
            return event.kind, {"pilothouse.why": why, "pilothouse.epoch": epoch}
        case kinds.RunStopping(by=by):
            return event.kind, {"pilothouse.by": by}
        case kinds.CommandReceived(command_kind=kind, command=command):
            return event.kind, {"pilothouse.command.kind": kind, "pilothouse.command.id": command}
        case kinds.SteerInjected(command=command):
            return event.kind, {"pilothouse.command.id": command}
        case kinds.VerdictIssued() as body:
            return event.kind, {
                "pilothouse.rung": body.rung,
                "pilothouse.rule": body.rule,
                "pilothouse.step": body.step,
                "pilothouse.shadow": body.shadow,
            }
        case kinds.CredentialRotated(from_=left, to=to, reason=reason):
            return event.kind, {"pilothouse.from": left, "pilothouse.to": to or "", "error.type": reason}
        case kinds.ModelFellBack(from_=left, to=to, reason=reason):
            return event.kind, {"pilothouse.from": left, "pilothouse.to": to, "error.type": reason}
        case kinds.ContextCompressed(before_tokens=before, after_tokens=after):
            return event.kind, {"pilothouse.tokens.before": before, "pilothouse.tokens.after": after}
        case kinds.RunContinued() | kinds.FuseRaised():
            return event.kind, {}
    return None
