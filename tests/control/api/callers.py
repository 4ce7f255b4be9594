"""Callers of the API with a token of some role."""

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client
from django.utils import timezone

from control.accounts.models import Role, Token

UNKNOWN = "01890000-0000-7000-8000-000000000000"


@dataclass
class Reply:
    status: int
    body: Any
    headers: Any

    @property
    def code(self) -> str:
        return self.body["error"]["code"]


@dataclass
class Caller:
    """One client. Bodies go out as JSON; answers that are JSON are read."""

    secret: str | None = None
    client: Client | None = None

    def ask(self, method: str, path: str, body: Any = None, *, type: str = "application/json", **headers: str) -> Reply:
        client = self.client or Client()
        sent = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
        if self.secret:
            sent["HTTP_AUTHORIZATION"] = f"Bearer {self.secret}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        answer = client.generic(method, path, data, content_type=type, **sent)
        raw = b"".join(answer.streaming_content) if answer.streaming else answer.content
        kind = answer.headers.get("Content-Type", "")
        return Reply(answer.status_code, json.loads(raw) if kind == "application/json" else raw, answer.headers)

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.ask("POST", path, body, **headers)

    def put(self, path: str, body: Any = None) -> Reply:
        return self.ask("PUT", path, body)

    def delete(self, path: str, body: Any = None) -> Reply:
        return self.ask("DELETE", path, body)


def caller(role: Role | str, name: str | None = None) -> Caller:
    _, secret = Token.issue(name or f"test {role}", Role(role), timezone.now())
    return Caller(secret=secret)
