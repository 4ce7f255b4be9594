"""People, tokens, one-time sign-in links and the audit trail."""

import hashlib
import secrets
from datetime import datetime
from typing import Self

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
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)

    @property
    def as_role(self) -> Role:
        return Role.ADMIN if self.is_superuser else Role(self.role)


def digest(secret: str) -> str:
    """How tokens and links are stored: the secret itself is shown once and kept nowhere."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Token(models.Model):
    """A bearer token for machines."""

    name = models.CharField(max_length=100, unique=True)
    role = models.CharField(max_length=10, choices=Role.choices)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    @classmethod
    def issue(cls, name: str, role: Role, now: datetime) -> tuple[Self, str]:
        """The row and the secret. Raises IntegrityError if the name is taken."""
        secret = "ph_" + secrets.token_urlsafe(32)
        return cls.objects.create(name=name, role=role, digest=digest(secret), created_at=now), secret


class LoginLink(models.Model):
    """A sign-in link that works once, for a short time."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)


class AuditEntry(models.Model):
    """One act of one person or token; only ever inserted."""

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
