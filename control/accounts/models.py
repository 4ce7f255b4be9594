"""People, tokens, one-time sign-in links and the audit trail."""

import hashlib
import secrets
from datetime import datetime
from typing import Any, NoReturn, Self

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def allows(self, needed: "Role") -> bool:
        """Each role may do what the ones before it may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class User(AbstractUser):
    """A person. Raising `sign_outs` ends every session they have, whether or not anybody knows of it."""

    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    sign_outs = models.PositiveIntegerField(default=0)
    # `<issuer> <sub>` of whoever signs in at an OpenID Connect provider.
    oidc_subject = models.CharField(max_length=500, unique=True, null=True, blank=True)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        known: str = super()._get_session_auth_hash(secret=secret)  # type: ignore[misc]
        return f"{known}:{self.sign_outs}" if self.sign_outs else known

    @property
    def as_role(self) -> Role:
        return Role.ADMIN if self.is_superuser else Role(self.role)


def digest(secret: str) -> str:
    """How tokens and links are stored: the secret itself is shown once and kept nowhere."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Token(models.Model):
    """A bearer token for machines. `user`: whose it is; it may never more than they may, and ends with them. `scope`:
    the verbs it is for beside looking, [] for all of its role."""

    name = models.CharField(max_length=100, unique=True)
    role = models.CharField(max_length=10, choices=Role.choices)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE, related_name="tokens")
    scope = models.JSONField(default=list)

    @classmethod
    def issue(cls, name: str, role: Role, now: datetime, **more: Any) -> tuple[Self, str]:
        """The row and the secret. Raises IntegrityError if the name is taken."""
        secret = "ph_" + secrets.token_urlsafe(32)
        return cls.objects.create(name=name, role=role, digest=digest(secret), created_at=now, **more), secret

    @property
    def as_role(self) -> Role:
        """Its role, or its owner's where that has become less."""
        own = Role(self.role)
        return own if self.user is None or self.user.as_role.allows(own) else self.user.as_role


class LoginLink(models.Model):
    """A sign-in link that works once, for a short time."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)


class SignIn(models.Model):
    """One browser in which a person is signed in; its session lies in Django's store under `key`."""

    key = models.CharField(max_length=40, primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sign_ins")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    address = models.CharField(max_length=64, blank=True, default="")
    browser = models.CharField(max_length=200, blank=True, default="")

    @property
    def handle(self) -> str:
        """How a page names it: the key itself is as good as the cookie, which no script may read."""
        return digest(f"session:{self.key}")[:24]


class Tries(models.Model):
    """Failed sign-ins in a row of one address or one account; until `until` no further one is looked at."""

    key = models.CharField(max_length=80, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()
    until = models.DateTimeField(null=True)


class Snooze(models.Model):
    """Somebody does not want to be asked about one call before `until`; others are."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    call = models.CharField(max_length=36)
    until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "call"], name="snooze_once")]


class AppendOnly(models.QuerySet["AuditEntry"]):
    """Rows of the audit trail are written once; the database refuses changes too."""

    def update(self, **_: Any) -> NoReturn:
        raise TypeError("the audit trail is only ever added to")

    def delete(self) -> NoReturn:
        raise TypeError("the audit trail is only ever added to")


class AuditEntry(models.Model):
    """One act of one person or token; only ever inserted."""

    objects = AppendOnly.as_manager()

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=150)
    role = models.CharField(max_length=10)
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=200)
    filter = models.JSONField(null=True, blank=True)
    reason = models.TextField(null=True, blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    result = models.CharField(max_length=100)
    address = models.CharField(max_length=64, null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["actor", "-id"], name="audit_actor"),
            models.Index(fields=["action", "-id"], name="audit_action"),
        ]

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("the audit trail is only ever added to")
