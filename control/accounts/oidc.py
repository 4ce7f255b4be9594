"""Signing in at an OpenID Connect provider. Authlib speaks the protocol: state, nonce, PKCE, and a signed token that is
for us, from there, and still good. Here it is decided who that is in this console, and what they may."""

from functools import cache
from typing import Any

from authlib.integrations.django_client import OAuth
from django.contrib.sessions.backends.base import SessionBase
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse

from control.accounts import sign_ins
from control.accounts.models import User
from control.accounts.oidc_config import OidcConfig

TIMEOUT_S = 10
_NEXT = "oidc_next"


class Refused(Exception):
    """Why somebody does not get in: a code for the audit trail, the name as far as it is known, words for them."""

    def __init__(self, *, code: str, text: str, name: str = "(unknown)", status: int = 403) -> None:
        super().__init__(code)
        self.code, self.text, self.name, self.status = code, text, name, status


@cache
def _client(config: OidcConfig) -> Any:
    """One per process: it keeps what the provider says of itself."""
    return OAuth().register(
        "oidc",
        client_id=config.client_id,
        client_secret=config.client_secret,
        server_metadata_url=f"{config.issuer}/.well-known/openid-configuration",
        # leeway: the token is used at once, and some live for a minute only.
        client_kwargs={
            "scope": config.scopes,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_S,
            "leeway": 0,
        },
    )


def begin(request: HttpRequest, config: OidcConfig, back: str, wanted: str) -> HttpResponse:
    """Off to the provider; `wanted` is where the person goes afterwards. Raises Refused if it cannot be reached."""
    request.session[_NEXT] = wanted
    try:
        answer: HttpResponse = _client(config).authorize_redirect(request, back)
    except Exception as error:
        raise _unreachable(config) from error
    return answer


def finish(request: HttpRequest, config: OidcConfig) -> User:
    """The person whom the provider has sent back. Raises Refused."""
    if said := request.GET.get("error"):
        raise Refused(code="oidc_denied", text=f"{config.label} did not sign you in: {said[:100]}.")
    # Authlib and what lies below it raise many kinds; each means the same here: this is no proof of anybody.
    try:
        token = _client(config).authorize_access_token(request)
        claims = dict(token.get("userinfo") or {})
        if claims and config.groups_claim not in claims and "userinfo_endpoint" in _client(config).server_metadata:
            more = dict(_client(config).userinfo(token=token))
            claims |= more if more.get("sub") == claims.get("sub") else {}
    except OSError as away:
        raise _unreachable(config) from away
    except Exception as error:
        text = f"What came back from {config.label} could not be trusted. Begin again from the sign-in page."
        raise Refused(code="oidc_invalid", text=text, status=400) from error
    if not claims.get("sub") or str(claims.get("iss", "")).rstrip("/") != config.issuer:
        raise Refused(code="oidc_invalid", text=f"{config.label} did not say who you are.", status=400)
    return _person(config, claims)


def wanted(session: SessionBase) -> str:
    """Where the person wanted to go, once."""
    return str(session.pop(_NEXT, ""))


def _unreachable(config: OidcConfig) -> Refused:
    text = f"{config.label} cannot be reached now. A password or a one-time link works all the same."
    return Refused(code="oidc_unreachable", text=text, status=502)


def _person(config: OidcConfig, claims: dict[str, Any]) -> User:
    """Known by issuer and subject, never by name: names change hands. Their role is what their groups say now."""
    subject = f"{config.issuer} {claims['sub']}"[:500]
    name = _name(config, claims)
    role = config.role_of(claims.get(config.groups_claim))
    user = User.objects.filter(oidc_subject=subject).first()
    if role is None:
        if user is not None:
            sign_ins.end_all(user)
        raise Refused(code="oidc_no_role", name=name, text="None of your groups has a role in this console.")
    if user is None:
        return _new(subject, name, role)
    if not user.is_active:
        raise Refused(code="oidc_inactive", name=user.username, text="Your account here has been switched off.")
    if user.role != role or user.is_superuser:
        User.objects.filter(pk=user.pk).update(role=role, is_superuser=False, is_staff=False)
        user.refresh_from_db()
    return user


def _name(config: OidcConfig, claims: dict[str, Any]) -> str:
    given = claims.get(config.name_claim) or claims.get("email") or claims["sub"]
    return "".join(letter for letter in str(given) if letter.isprintable()).strip()[:150] or "nameless"


def _new(subject: str, name: str, role: str) -> User:
    user = User(username=name, role=role, oidc_subject=subject)
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        known = User.objects.filter(oidc_subject=subject).first()
        if known is not None:
            return known
        text = f"The name “{name}” belongs to another account of this console. An admin can rename one of the two."
        raise Refused(code="oidc_name_taken", name=name, text=text, status=409) from error
    return user
