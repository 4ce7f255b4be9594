"""A small OpenID Connect provider over real HTTP: discovery, keys, codes with PKCE, signed tokens, userinfo.

It asks nobody for a password: whoever comes is `person`. What tests spoil: `claims` replaces parts of the signed token,
`forge` signs it with a key that is not in the published set.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "pilothouse", "a client's secret"


@dataclass(slots=True, kw_only=True)
class Provider:
    """`seen` lists the paths that were asked for; `codes` the open authorizations by code."""

    issuer: str = ""
    person: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    forge: bool = False
    in_userinfo: tuple[str, ...] = ()
    seen: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"}))

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert asked["client_id"] == CLIENT and asked["response_type"] == "code" and "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256" and asked["nonce"]
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """None: this client, code or verifier is not right. A code is good once."""
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or authorization != f"Basic {known}" or asked["code_challenge"] != challenge:
            return None
        if form["redirect_uri"] != asked["redirect_uri"]:
            return None
        now = int(time.time())
        told = {name: value for name, value in self.person.items() if name not in self.in_userinfo}
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        key = RSAKey.generate_key(2048, {"kid": "one"}) if self.forge else self.key
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims | told | self.claims, key)
        return {"access_token": "anybody", "token_type": "Bearer", "expires_in": 60, "id_token": signed}

    def keys(self) -> Any:
        return KeySet([self.key]).as_dict(private=False)


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            provider.seen.append(url.path)
            if url.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.end_headers()
            elif url.path == "/userinfo":
                self._say(200 if self.headers["Authorization"] == "Bearer anybody" else 401, provider.person)
            else:
                known = {"/.well-known/openid-configuration": provider.discovery, "/keys": provider.keys}
                self._say(200, known[url.path]())

        def do_POST(self) -> None:
            provider.seen.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            token = provider.token(form, self.headers["Authorization"])
            self._say(200 if token else 400, token or {"error": "invalid_grant"})

        def _say(self, status: int, what: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(what).encode())

        def log_message(self, *_: Any) -> None: ...

    return Handler


@contextmanager
def provider(**person: Any) -> Iterator[Provider]:
    """A running provider at which everybody is this person."""
    made = Provider(person=person)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
