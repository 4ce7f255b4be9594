"""What CREDENTIALS_FILE says of each key: read strictly, no line ever quoted, since one may hold a key by mistake."""

import os
import tomllib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.policy.credentials import PERIODS
from agents.policy.known_secrets import know
from control.fleet.addresses import normal_url, why_bad

LONGEST_LABEL = 100


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
        """The key, fresh from its source; this process hides it from now on. CredentialError if there is none."""
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
        know(key)
        return key


def read(path: str) -> tuple[Credential, ...]:
    """The file's credentials, none if no file is named. Raises CredentialError `bad_credentials_file`."""
    if not path:
        return ()
    place = Path(path).expanduser()
    try:
        stat = place.stat()
    except OSError as error:
        raise _bad(f"CREDENTIALS_FILE {path} cannot be read: {error.strerror}.") from None
    return _parsed(path, place, (stat.st_mtime_ns, stat.st_size, stat.st_ino))


@lru_cache(maxsize=4)
def _parsed(path: str, place: Path, _version: tuple[int, ...]) -> tuple[Credential, ...]:
    """Every call of every run asks, so the text is parsed once per version of the file."""
    try:
        raw = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise _bad(f"CREDENTIALS_FILE {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise _bad(f"CREDENTIALS_FILE {path} is no valid TOML.") from None
    rows = raw.get("credential", [])
    if not isinstance(rows, list):
        raise _bad(f"{path}: write each credential under [[credential]].")
    found = tuple(_row(row, f"{path}, credential {number}") for number, row in enumerate(rows, start=1))
    labels = [credential.label for credential in found]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise _bad(f"{path}: the label {twice} is there twice. Give each credential its own.")
    return found


def _row(row: Any, where: str) -> Credential:
    label, urls = (row.get("label"), row.get("base_urls")) if isinstance(row, dict) else (None, None)
    if not isinstance(label, str) or not label.strip() or len(label) > LONGEST_LABEL or not label.isprintable():
        raise _bad(f"{where}: it needs a label, a word or more of at most {LONGEST_LABEL} characters.")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) and not why_bad(url) for url in urls):
        raise _bad(f"{where}: base_urls lists the addresses its key may go to, like https://host/v1.")
    sources = [row[name] for name in ("key_env", "key_file") if row.get(name)]
    if len(sources) != 1 or not isinstance(sources[0], str):
        raise _bad(f"{where}: give either key_env or key_file.")
    per = row.get("per")
    if per is not None and per not in PERIODS:
        raise _bad(f"{where}: per is one of {', '.join(PERIODS)}; leave it out for a limit that never starts anew.")
    return Credential(
        label=label,
        provider=str(row.get("provider", "openai")),
        base_urls=tuple(normal_url(url) for url in urls),
        key_env=row.get("key_env"),
        key_file=row.get("key_file"),
        limit_usd=_limit(row.get("limit_usd"), where),
        per=per,
    )


def _limit(given: Any, where: str) -> Decimal | None:
    if given is None:
        return None
    try:
        limit = Decimal(str(given)) if not isinstance(given, bool) else Decimal("NaN")
    except InvalidOperation:
        limit = Decimal("NaN")
    if not limit.is_finite() or limit < 0:
        raise _bad(f"{where}: limit_usd is an amount of dollars, like 25 or 2.50.")
    return limit


def _bad(message: str) -> CredentialError:
    return CredentialError("bad_credentials_file", message)
