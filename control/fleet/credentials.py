"""API keys by label. The key itself is read at the moment of a call and is kept in no row, event, repr or log line.

`CREDENTIALS_FILE` is TOML: `[[credential]] label, provider, base_urls, key_env | key_file, limit_usd?, per?`. Beside it
`OPENAI_API_KEY` makes the credential `environment`, which belongs to `OPENAI_BASE_URL`.
"""

import os
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.spec import ModelSpec
from control.fleet.addresses import normal_url

ENVIRONMENT = "environment"


class CredentialError(Exception):
    """`code` is stable, the text says what to do next; neither ever holds a key."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Where a key is found and where it may be sent. `base_urls` are in normal form; `per` is e.g. `day`."""

    label: str
    provider: str
    base_urls: tuple[str, ...]
    key_env: str | None = None
    key_file: str | None = None
    limit_usd: Decimal | None = None
    per: str | None = None

    def belongs_to(self, base_url: str) -> bool:
        return normal_url(base_url) in self.base_urls

    def read_key(self) -> str:
        """The key, fresh from its source. Raises CredentialError if it is not there."""
        if self.key_env:
            key = os.environ.get(self.key_env, "").strip()
            where = f"the environment variable {self.key_env}"
        else:
            where = f"the file {self.key_file}"
            try:
                key = Path(str(self.key_file)).expanduser().read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                key = ""
        if not key:
            raise CredentialError("no_key", f"Credential {self.label} has no key: put it into {where}.")
        return key


def all_of() -> dict[str, Credential]:
    """Every credential by label. Raises CredentialError if the file cannot be read as it should."""
    found = {credential.label: credential for credential in _from_file()}
    if os.environ.get("OPENAI_API_KEY"):
        base_url = normal_url(settings.MODEL_BASE_URL)
        found.setdefault(
            ENVIRONMENT,
            Credential(label=ENVIRONMENT, provider="openai", base_urls=(base_url,), key_env="OPENAI_API_KEY"),
        )
    return found


def choose(label: str | None, base_url: str) -> str | None:
    """The label of the credential to use at a base URL; None if none is needed or known there.

    Raises CredentialError `unknown_credential` or `credential_host_mismatch` for a label that was asked for.
    """
    known = all_of()
    if not label:
        return next((found.label for found in known.values() if found.belongs_to(base_url)), None)
    if label not in known:
        labels = ", ".join(sorted(known)) or "none"
        raise CredentialError(
            "unknown_credential",
            f"There is no credential {label!r:.60}. Known labels: {labels}. Add it to CREDENTIALS_FILE.",
        )
    if not known[label].belongs_to(base_url):
        raise CredentialError(
            "credential_host_mismatch",
            f"Credential {label} is not for {base_url}. Its key goes only to {', '.join(known[label].base_urls)}: "
            "use one of these, or add the address to its base_urls.",
        )
    return label


def key_for(model: ModelSpec) -> str | None:
    """The key for one call, read now; None for a model without a credential. Raises CredentialError."""
    if model.credential is None:
        return None
    return all_of()[choose(model.credential, model.base_url) or ""].read_key()


def _from_file() -> list[Credential]:
    path = settings.CREDENTIALS_FILE
    if not path:
        return []
    try:
        raw = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise CredentialError(
            "bad_credentials_file", f"CREDENTIALS_FILE {path} cannot be read: {error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # Without the parser's text: it may quote the line, and a line may hold a key by mistake.
        raise CredentialError("bad_credentials_file", f"CREDENTIALS_FILE {path} is no valid TOML.") from error
    rows = raw.get("credential", [])
    if not isinstance(rows, list):
        raise CredentialError("bad_credentials_file", f"{path}: write each credential under [[credential]].")
    return [_row(row, number, path) for number, row in enumerate(rows, start=1)]


def _row(row: Any, number: int, path: str) -> Credential:
    where = f"{path}, credential {number}"
    label, urls = (row.get("label"), row.get("base_urls")) if isinstance(row, dict) else (None, None)
    if not isinstance(label, str) or not label:
        raise CredentialError("bad_credentials_file", f"{where}: it needs a label.")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) and url for url in urls):
        raise CredentialError("bad_credentials_file", f"{where}: base_urls lists the addresses its key may go to.")
    if bool(row.get("key_env")) == bool(row.get("key_file")):
        raise CredentialError("bad_credentials_file", f"{where}: give either key_env or key_file.")
    limit = row.get("limit_usd")
    return Credential(
        label=label,
        provider=str(row.get("provider", "openai")),
        base_urls=tuple(normal_url(url) for url in urls),
        key_env=row.get("key_env"),
        key_file=row.get("key_file"),
        limit_usd=Decimal(str(limit)) if limit is not None else None,
        per=row.get("per"),
    )
