"""API keys by label. The key itself is read at the moment of a call and is kept in no row, event, repr or log line.

`CREDENTIALS_FILE` is TOML: `[[credential]] label, provider, base_urls, key_env | key_file, limit_usd?, per?`. Beside it
`OPENAI_API_KEY` makes the credential `environment`, which belongs to `OPENAI_BASE_URL`.
"""

import contextlib
import os
from collections.abc import Sequence

from django.conf import settings

from agents.spec import ModelSpec
from control.fleet.addresses import normal_url
from control.fleet.credentials_file import Credential, CredentialError, read

__all__ = ["ENVIRONMENT", "Credential", "CredentialError", "all_of", "fitting", "known", "learn", "named", "pool_of"]

ENVIRONMENT = "environment"


def all_of() -> dict[str, Credential]:
    """Every credential by label. Raises CredentialError if the file cannot be read as it should."""
    found = {credential.label: credential for credential in read(settings.CREDENTIALS_FILE)}
    if os.environ.get("OPENAI_API_KEY"):
        base_url = normal_url(settings.MODEL_BASE_URL)
        found.setdefault(
            ENVIRONMENT,
            Credential(label=ENVIRONMENT, provider="openai", base_urls=(base_url,), key_env="OPENAI_API_KEY"),
        )
    return found


def learn() -> None:
    """Read every key that this process can read, once, so that it hides them also where people write them."""
    with contextlib.suppress(CredentialError):
        for credential in all_of().values():
            with contextlib.suppress(CredentialError):
                credential.read_key()


def known(label: str) -> Credential:
    """The credential of a label. Raises CredentialError `unknown_credential`."""
    found = all_of()
    if label not in found:
        labels = ", ".join(sorted(found)) or "none"
        raise CredentialError(
            "unknown_credential",
            f"There is no credential {label!r:.60}. Known labels: {labels}. Add it to CREDENTIALS_FILE.",
        )
    return found[label]


def named(label: str, base_url: str) -> Credential:
    """The one asked for at an address. Raises CredentialError: unknown_credential, credential_host_mismatch."""
    found = known(label)
    if not found.belongs_to(base_url):
        raise CredentialError(
            "credential_host_mismatch",
            f"Credential {label} is not for {base_url}. Its key goes only to {', '.join(found.base_urls)}: "
            "use one of these, or add the address to its base_urls.",
        )
    return found


def fitting(base_url: str, provider: str | None = None) -> list[Credential]:
    """Those whose keys may go to an address. Of several, those of this very provider; and the environment's own only
    where the file has none, since its key may be one of the file's, without that one's limit."""
    fit = [credential for credential in all_of().values() if credential.belongs_to(base_url)]
    listed = [credential for credential in fit if credential.label != ENVIRONMENT] or fit
    return [credential for credential in listed if credential.provider == provider] or listed


def pool_of(model: ModelSpec, *, rotate: bool = False) -> Sequence[Credential]:
    """The credentials with which a model may be asked; empty for a model that needs none. A named one stands alone, or
    first if it may be rotated. Raises CredentialError for a named one that is gone or may not go there."""
    if model.credential is None:
        return [] if model.keyless else fitting(model.base_url, model.provider)
    own = named(model.credential, model.base_url)
    if not rotate:
        return [own]
    return [own, *(one for one in fitting(model.base_url, model.provider) if one.label != own.label)]
