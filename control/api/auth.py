"""Who calls, and may they: a bearer token or a session with CSRF, checked against the role that the verb needs."""

from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from control.accounts import audit, roles, tokens
from control.accounts.models import User
from control.accounts.roles import Actor
from control.api.errors import ApiError, unauthenticated

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def identify(request: HttpRequest) -> Actor:
    """The caller. Raises 401 without a valid sign-in, 403 `csrf_failed` for an unsafe session request without token.

    A request that brings an Authorization header is judged by it alone: a wrong token never falls back to a cookie.
    """
    where = roles.address(request)
    header = request.headers.get("Authorization")
    if header is not None:
        token = tokens.authenticate(header)
        if token is None:
            raise unauthenticated()
        return roles.of_token(token, where)
    user = request.user
    if not isinstance(user, User) or not user.is_active:
        raise unauthenticated()
    if request.method not in SAFE_METHODS and check_csrf(request) is not None:
        message = "Send the csrftoken cookie's value in the X-CSRFToken header, or use a bearer token."
        raise ApiError("csrf_failed", message, status=403)
    return roles.of_user(user, where)


def demand(actor: Actor, verb: str) -> None:
    """Raises 403 `forbidden` if the actor's role does not cover the verb."""
    if actor.may(verb):
        return
    needed = roles.NEEDED[verb].value
    if actor.role.allows(roles.NEEDED[verb]):
        raise ApiError(
            "forbidden",
            f"This token is not made for {verb}. Make one with it in its scope.",
            status=403,
            detail={"needed": needed, "role": actor.role.value, "verb": verb, "scope": sorted(actor.scope or ())},
        )
    raise ApiError(
        "forbidden",
        f"This needs the role {needed}; you have {actor.role.value}. Ask an admin for the role or a token with it.",
        status=403,
        detail={"needed": needed, "role": actor.role.value, "verb": verb},
    )


class Needs(AuthBase):
    """The `auth` of one route: `Needs("interrupt")`. What it returns becomes `request.auth`."""

    openapi_type: str = "http"
    openapi_scheme: str = "bearer"

    def __init__(self, verb: str) -> None:
        if verb not in roles.NEEDED:
            raise ValueError(f"no role is set for the verb {verb}")
        self.verb = verb
        super().__init__()

    def __call__(self, request: HttpRequest) -> Actor:
        actor = identify(request)
        try:
            demand(actor, self.verb)
        except ApiError as refusal:
            audit.record(actor, self.verb, request.path[:200], result=refusal.code)
            raise
        return actor
