"""Who acts, and which role each verb needs."""

from dataclasses import dataclass

from django.http import HttpRequest

from control.accounts.models import Role, Token, User

# One table for the API, the window and the tests; a verb that is not listed is refused to everyone.
NEEDED: dict[str, Role] = {
    "view": Role.VIEWER,
    "start": Role.OPERATOR,
    "interrupt": Role.OPERATOR,
    "steer": Role.OPERATOR,
    "withdraw": Role.OPERATOR,
    "pause": Role.OPERATOR,
    "unpause": Role.OPERATOR,
    "answer": Role.OPERATOR,
    "raise": Role.OPERATOR,
    "fork": Role.OPERATOR,
    "backtest": Role.OPERATOR,
    "replay": Role.OPERATOR,
    "write_schedule": Role.OPERATOR,
    "block": Role.OPERATOR,
    "lift": Role.OPERATOR,
    "write_memory": Role.OPERATOR,
    "drain": Role.OPERATOR,
    "rest_credential": Role.OPERATOR,
    "revive_credential": Role.OPERATOR,
    "handle_incident": Role.OPERATOR,
    "write_postmortem": Role.OPERATOR,
    "share_postmortem": Role.OPERATOR,
    "read_audit": Role.OPERATOR,
    "export_audit": Role.ADMIN,
    "write_agent": Role.ADMIN,
    "write_policy": Role.ADMIN,
    "write_route": Role.ADMIN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person, a token or the command line; `name` is what commands and the audit trail keep. `scope`: the only verbs
    it is for beside looking, None for all of its role."""

    name: str
    role: Role
    address: str | None = None
    scope: frozenset[str] | None = None

    def may(self, verb: str) -> bool:
        needed = NEEDED.get(verb)
        inside = self.scope is None or verb == "view" or verb in self.scope
        return needed is not None and self.role.allows(needed) and inside


def of_user(user: User, address: str | None = None) -> Actor:
    return Actor(name=user.get_username(), role=user.as_role, address=address)


def of_token(token: Token, address: str | None = None) -> Actor:
    scope = frozenset(token.scope) if token.scope else None
    return Actor(name=f"token:{token.name}", role=token.as_role, address=address, scope=scope)


def of_request(request: HttpRequest) -> Actor | None:
    """The actor that the API has authenticated, else the signed-in person, else None."""
    known = getattr(request, "auth", None)
    if isinstance(known, Actor):
        return known
    user = getattr(request, "user", None)
    if isinstance(user, User) and user.is_active:
        return of_user(user, address(request))
    return None


def address(request: HttpRequest) -> str | None:
    """The peer's address as the server saw it. Forwarding headers are not believed: anyone can send them."""
    return request.META.get("REMOTE_ADDR") or None
