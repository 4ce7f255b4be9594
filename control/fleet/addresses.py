"""Addresses of models: their one normal form, and which of them runs may use."""

from urllib.parse import urlsplit

from django.conf import settings

_DEFAULT_PORTS = {"http": 80, "https": 443}


def normal_url(url: str) -> str:
    """Scheme and host in lower case, no default port, no slash at the end. Raises ValueError for what is no URL."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None and parts.port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    return f"{parts.scheme.lower()}://{host}{parts.path.rstrip('/')}"


def why_bad(url: str) -> str | None:
    """What is wrong with a base URL, as a sentence that says what to do; None if nothing is."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        return "It cannot be read as a URL. Write it like https://host/v1."
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        return "A base URL starts with http:// or https:// and names a host, like https://host/v1."
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url.strip()):
        return "It holds blanks or control characters. Leave them out."
    if parts.username or parts.password:
        return "Leave user name and password out; keys come from a credential."
    if parts.query or parts.fragment:
        return "Leave out everything from the question mark or hash on."
    if parts.path.rstrip("/").endswith("/chat/completions"):
        return "Give the address before /chat/completions; it usually ends in /v1."
    return None


def is_allowed(url: str) -> bool:
    """Embedded, any address unless ALLOWED_BASE_URLS lists some; in production the listed ones and those of the
    operator's own environment."""
    if settings.EMBEDDED and not settings.ALLOWED_BASE_URLS:
        return True
    own = [settings.DRILL_URL] if settings.EMBEDDED or settings.DRILL_URL_GIVEN else []
    if settings.MODEL_BASE_URL_GIVEN:
        own.append(settings.MODEL_BASE_URL)
    return normal_url(url) in {normal_url(known) for known in [*settings.ALLOWED_BASE_URLS, *own]}
