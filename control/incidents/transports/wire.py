"""One POST: no redirect is followed, the answer is read with bounds, and every failure has a name.

Routes are made by admins, who may mean machines of their own network, so private addresses are allowed; link-local ones
(where clouds keep the secrets of a machine), multicast and unspecified ones are not. The name is looked up once and the
connection goes to the very address that was judged.
"""

import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

import httpx

from control.incidents.transports.ports import BadOption, Letter, Outcome, Result

CONNECT_S = 5.0
ANSWER_S = 10.0
MOST_ANSWER = 4_096
LONGEST_PATIENCE_S = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`text`: the beginning of the body. `after_s`: Retry-After, in seconds, if it could be read."""

    code: int
    text: str
    after_s: float | None


class Forbidden(Exception):
    """The name leads to an address that no route may mean."""


def check_url(name: str, url: str) -> None:
    """Raises BadOption for what is no plain http(s) address."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        raise BadOption(name, "It cannot be read as an address. Write it like https://host/path.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadOption(name, "An address starts with https:// (or http://) and names a host.")
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url.strip()):
        raise BadOption(name, "It holds blanks or control characters. Leave them out.")
    if parts.username or parts.password:
        raise BadOption(name, "Leave user name and password out of the address.")
    try:
        address = ipaddress.ip_address(parts.hostname)
    except ValueError:
        return
    if _is_forbidden(address):
        raise BadOption(name, "Link-local, multicast and unspecified addresses are no place for alerts.")


def _is_forbidden(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_link_local or mapped.is_multicast or mapped.is_unspecified)


def post(letter: Letter, judge: Callable[[Answer], Outcome]) -> Outcome:
    """Send it and have the answer judged. What a network does comes back as an outcome that may be tried again."""
    try:
        return judge(_post(letter))
    except Forbidden as error:
        return Outcome(result=Result.FINAL, why=str(error))
    except socket.gaierror:
        host = urlsplit(letter.to).hostname or ""
        return Outcome(result=Result.RETRY, why=f"The name {host[:100]} leads nowhere (DNS).")
    except httpx.ConnectTimeout:
        return Outcome(result=Result.RETRY, why=f"No connection within {CONNECT_S:g} s.")
    except httpx.TimeoutException:
        return Outcome(result=Result.RETRY, why=f"No answer within {ANSWER_S:g} s.")
    except httpx.HTTPError as error:
        return Outcome(result=Result.RETRY, why=f"The connection failed: {type(error).__name__}.")
    except OSError as error:
        return Outcome(result=Result.RETRY, why=f"The connection failed: {error.strerror or type(error).__name__}.")


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _post(letter: Letter) -> Answer:
    parts = urlsplit(letter.to)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = _address(host, port)
    shown = f"[{address}]" if ":" in address else address
    there = urlunsplit((parts.scheme, f"{shown}:{port}", parts.path or "/", parts.query, ""))
    headers = {"host": parts.netloc, "user-agent": "pilothouse", **letter.headers}
    limits = httpx.Timeout(ANSWER_S, connect=CONNECT_S)
    with (
        httpx.Client(timeout=limits, verify=_tls(), trust_env=False, follow_redirects=False) as client,
        client.stream(
            "POST", there, content=letter.body, headers=headers, extensions={"sni_hostname": host}
        ) as response,
    ):
        text = b""
        for chunk in response.iter_raw():
            text += chunk
            if len(text) >= MOST_ANSWER:
                break
        return Answer(
            code=response.status_code,
            text=text[:MOST_ANSWER].decode("utf-8", "replace"),
            after_s=retry_after(response.headers, datetime.now(UTC)),
        )


def _address(host: str, port: int) -> str:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not _is_forbidden(ipaddress.ip_address(address.partition("%")[0])):
            return address
    raise Forbidden(f"{host[:100]} leads to an address that no alert may go to.")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """RFC 9110, section 10.2.3: seconds or a date; bounded, None for what is neither."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text) if text.replace(".", "", 1).isdigit() else None
        if seconds is None:
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), LONGEST_PATIENCE_S)


def judge_plainly(answer: Answer) -> Outcome:
    """2xx is delivered; 408, 425, 429 and 5xx are tried again; a redirect and any other 4xx are final."""
    if 200 <= answer.code < 300:
        return Outcome(result=Result.DELIVERED, code=answer.code)
    why = said(answer.text)
    if answer.code == 429:
        return Outcome(result=Result.RETRY, code=429, why=why or "Too many.", after_s=answer.after_s, rests=True)
    if answer.code in (408, 425) or answer.code >= 500:
        return Outcome(result=Result.RETRY, code=answer.code, why=why, after_s=answer.after_s)
    if 300 <= answer.code < 400:
        why = "It answers with a redirect, which is not followed. Give the address that it leads to."
    return Outcome(result=Result.FINAL, code=answer.code, why=why)


def said(text: str) -> str:
    """The beginning of what a service answered, on one line of printable characters."""
    return "".join(char if char.isprintable() else " " for char in text).strip()[:200]
