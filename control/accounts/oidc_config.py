"""How people sign in at an OpenID Connect provider: read from the environment, off unless OIDC_ISSUER is set."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

EVERYONE = "*"
# In the order of what they may: the last one that fits counts.
_ROLES = ("viewer", "operator", "admin")
_LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    """`roles` pairs groups with roles, `*` is whoever signs in. `name_claim` becomes the user name."""

    issuer: str
    client_id: str
    client_secret: str
    label: str
    scopes: str
    name_claim: str
    groups_claim: str
    roles: tuple[tuple[str, str], ...]

    def role_of(self, groups: object) -> str | None:
        """The highest role that one of these groups has; None: such a person has no business here."""
        member = {EVERYONE, *(str(group) for group in groups)} if isinstance(groups, list | tuple) else {EVERYONE}
        if isinstance(groups, str):
            member.add(groups)
        held = {role for group, role in self.roles if group in member}
        return next((role for role in reversed(_ROLES) if role in held), None)


def read(environment: Mapping[str, str]) -> OidcConfig | None:
    """Raises ImproperlyConfigured for what could not work."""
    issuer = environment.get("OIDC_ISSUER", "").strip()
    if not issuer:
        return None
    url = urlsplit(issuer)
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOCAL):
        raise ImproperlyConfigured(f"OIDC_ISSUER must be an address with https; it is {issuer!r}.")
    client, secret = (environment.get(name, "").strip() for name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"))
    if not client or not secret:
        raise ImproperlyConfigured("OIDC_ISSUER needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET beside it.")
    scopes = environment.get("OIDC_SCOPES", "").strip() or "openid profile email"
    if "openid" not in scopes.split():
        raise ImproperlyConfigured(f"OIDC_SCOPES must hold openid; it is {scopes!r}.")
    return OidcConfig(
        issuer=issuer.rstrip("/"),
        client_id=client,
        client_secret=secret,
        label=environment.get("OIDC_LABEL", "").strip() or str(url.hostname),
        scopes=scopes,
        name_claim=environment.get("OIDC_NAME_CLAIM", "").strip() or "preferred_username",
        groups_claim=environment.get("OIDC_GROUPS_CLAIM", "").strip() or "groups",
        roles=_roles(environment.get("OIDC_ROLES", "")),
    )


def _roles(text: str) -> tuple[tuple[str, str], ...]:
    """`sre=operator,sre-leads=admin,*=viewer`. There is no default: an account elsewhere opens nothing here."""
    pairs = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        group, _, role = word.rpartition("=")
        if not group.strip() or role.strip() not in _ROLES:
            raise ImproperlyConfigured(f"OIDC_ROLES holds GROUP=ROLE with viewer, operator or admin, not {word!r}.")
        pairs.append((group.strip(), role.strip()))
    if not pairs:
        raise ImproperlyConfigured(
            "OIDC_ISSUER needs OIDC_ROLES beside it, e.g. sre=operator,sre-leads=admin,*=viewer."
        )
    return tuple(pairs)
