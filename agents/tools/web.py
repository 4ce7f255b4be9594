"""The tool that fetches a page from the open web, and only from there; off unless someone switches it on.

Each hop is resolved here, every address must be public, and the connection goes to that very address, so that neither a
redirect nor a name that changes its mind leads to an internal service.
"""

import asyncio
import codecs
import ipaddress
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from typing import Any

import httpx

from agents.errors import ToolError
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.outputs import bounded

MAX_BODY = 2 * 1024 * 1024
MAX_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "pilothouse",
    "Accept": "text/html,text/plain,application/json;q=0.9,*/*;q=0.5",
    # What is packed is unpacked here, in bounds: a few bytes can unpack to gigabytes.
    "Accept-Encoding": "gzip",
}
# All of the open internet's IPv6; outside of it are only ways to hide an internal address.
_GLOBAL_V6 = ipaddress.ip_network("2000::/3")


class WebFetch:
    spec = ToolSpec(
        name="web_fetch",
        description="Fetch a public web page (GET) and read it as text. Internal addresses are refused.",
        parameters={
            "type": "object",
            "properties": {"url": {"type": "string", "minLength": 1, "description": "http:// or https://"}},
            "required": ["url"],
        },
        concurrency=ConcurrencyClass.SAFE,
        timeout_s=60.0,
        resume=Resume.RERUN,
    )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        url, hops = args["url"], 0
        # No proxy from the environment: it would make the check of addresses void.
        async with httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=20.0) as client:
            try:
                while True:
                    page = await _get(client, _parse(url))
                    if page.status not in _REDIRECTS or "location" not in page.headers:
                        break
                    client.cookies.clear()
                    hops += 1
                    if hops > MAX_HOPS:
                        raise ToolError(f"{args['url']} redirects more than {MAX_HOPS} times.", kind="redirects")
                    url = str(_parse(url).join(page.headers["location"]))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ToolError(
                    f"{url} cannot be fetched: {type(error).__name__} {error}".strip() + ".", kind="http"
                ) from error
        # Taking a page apart takes longer than a loop that others share can wait.
        output: ToolOutput = await context.in_thread(partial(_told, url, page))
        return output


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer. `cut`: there was more than is taken."""

    status: int
    headers: httpx.Headers
    body: bytes
    cut: bool


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the open internet, also when an IPv4 one hides in an IPv6 one."""
    found = ipaddress.ip_address(address.split("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and found in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            found = inner
        elif found not in _GLOBAL_V6:
            return False
    return found.is_global and not found.is_multicast


def _parse(url: str) -> httpx.URL:
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ToolError(f"{url!r} is no web address. Give one that begins with http:// or https://.", kind="bad_url")
    if parsed.userinfo:
        raise ToolError("Leave user name and password out of the address.", kind="bad_url")
    return parsed


async def _get(client: httpx.AsyncClient, url: httpx.URL) -> Page:
    address = await _public_address(url.host, url.port or (443 if url.scheme == "https" else 80))
    request = client.build_request("GET", url, headers=_HEADERS)  # its Host header is that of the name
    request.url = url.copy_with(host=address)
    request.extensions = {**request.extensions, "sni_hostname": url.host}
    response = await client.send(request, stream=True)
    try:
        unpack = _unpacker(response.headers.get("content-encoding", "").strip().lower())
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += unpack.decompress(chunk, MAX_BODY + 1 - len(body)) if unpack else chunk
            if len(body) > MAX_BODY:
                break
        return Page(
            status=response.status_code,
            headers=response.headers,
            body=bytes(body[:MAX_BODY]),
            cut=len(body) > MAX_BODY,
        )
    except zlib.error as error:
        raise ToolError(f"{url} answered with bytes that cannot be unpacked ({error}).", kind="http") from error
    finally:
        await response.aclose()


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    raise ToolError(f"The page is packed as {encoding:.40}, which nobody asked for.", kind="http")


async def _public_address(host: str, port: int) -> str:
    """One address of the host; refused if any of its addresses is internal."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"There is no host {host!r} ({error}).", kind="no_host") from error
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses or not all(map(is_public, addresses)):
        raise ToolError(f"{host!r} is an internal address; only public ones may be fetched.", kind="internal")
    return addresses[0]


def _told(url: str, page: Page) -> ToolOutput:
    status = page.status
    kind, _, rest = page.headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    if not (kind.startswith("text/") or kind.endswith(("json", "xml", "javascript")) or not kind):
        return ToolOutput(text=f"{url} answered {status} with {kind}, which is no text.", is_error=True)
    text = page.body.decode(_charset(rest), "replace")
    if kind in ("text/html", "application/xhtml+xml"):
        text = _readable(text)
    note = f"\n[cut after {MAX_BODY} bytes]" if page.cut else ""
    head = "" if status < 400 else f"{url} answered {status}.\n"
    return bounded(f"{head}{text}{note}", is_error=status >= 400)


def _charset(parameters: str) -> str:
    """The character set that the page names, if it is one for text; else UTF-8."""
    _, _, named = parameters.partition("charset=")
    try:
        found = codecs.lookup(named.split(";")[0].strip(" \t\"'")[:40])
    except (LookupError, ValueError):
        return "utf-8"
    return found.name if getattr(found, "_is_text_encoding", False) else "utf-8"


class _Text(HTMLParser):
    _BLOCKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "article"})
    _HIDDEN = frozenset({"script", "style", "noscript", "template", "svg"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self._HIDDEN
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in self._HIDDEN))
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def _readable(html: str) -> str:
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = [" ".join(line.split()) for line in "".join(parser.parts).split("\n")]
    return "\n".join(line for line, before in zip(lines, ["", *lines], strict=False) if line or before).strip()
