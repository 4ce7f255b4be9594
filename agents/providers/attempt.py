"""One attempt at a model: send the request, read the answer, and turn whatever goes wrong into a ModelError."""

import asyncio
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from agents.errors import ClassifiedError, ModelError, Spent, WireEvidence
from agents.policy.faults import classify, known, sample_of
from agents.policy.redaction import make_safe
from agents.providers import spending
from agents.providers.http import Stalls, Watch, send
from agents.providers.prices import UNPRICED, Later
from agents.providers.stream import Broken, Chanting, Fold, Reader

MAX_ERROR_BYTES = 64 * 1024
MAX_REDIRECTS = 3
_SECRET_HEADERS = frozenset({"set-cookie", "authorization", "x-api-key", "proxy-authenticate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes and with what; `secret` is cut out of everything that an error shows. `price` is asked when
    there is something to be priced."""

    url: httpx.URL
    headers: dict[str, str]
    provider: str
    secret: str | None = None
    price: Later = UNPRICED
    _encoded: list[tuple[bytes, bytes]] = field(default_factory=list, init=False, repr=False, compare=False)

    def request(self, url: httpx.URL, body: bytes, extensions: dict[str, Any]) -> httpx.Request:
        """What httpx makes of a request with content, without its looking through the headers each time."""
        if not self._encoded:
            self._encoded.extend(httpx.Headers(self.headers).raw)
        headers = [(b"Host", url.netloc), *self._encoded, (b"Content-Length", b"%d" % len(body))]
        return httpx.Request("POST", url, headers=headers, stream=httpx.ByteStream(body), extensions=extensions)

    @property
    def place(self) -> str:
        return self.url.netloc.decode("ascii", "replace")


class Attempt:
    """Runs once. Raises ModelError; CancelledError passes through once the socket is closed."""

    def __init__(
        self,
        target: Target,
        fold: Fold,
        on_text: Callable[[str], None],
        stalls: Stalls,
        *,
        hears_chants: bool = False,
    ) -> None:
        self._target = target
        self._fold = fold
        self._stalls = stalls
        self._watch = Watch(stalls)
        self._reader = Reader(fold, self._watch, stalls, on_text, hears_chants=hears_chants)
        self._response: httpx.Response | None = None
        self._body = b""
        self._sent = False

    @property
    def ttft_ms(self) -> float | None:
        """Milliseconds from the request to the first piece of an answer."""
        return self._reader.ttft_ms

    async def run(self, body: bytes) -> None:
        """Returns when the fold holds an answer with an end to it."""
        fold = self._fold
        self._body = body
        try:
            async with self._watch:
                await self._exchange(body)
        except asyncio.CancelledError as cancelled:
            cancelled.spent = self._spent(self._target.price.at_once)  # type: ignore[attr-defined]
            raise
        except Broken as broken:
            raise self.failed(broken) from None
        except TimeoutError as error:
            if self._watch.expired is None and not fold.finished:
                raise self._lost(error) from None
            if self._watch.expired != "settled" and not fold.finished:
                raise self._stalled() from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            # After a finish reason the answer is whole, whatever becomes of the connection.
            if not (fold.finished or fold.ended):
                raise self._lost(error) from None
        if not (fold.finished or fold.ended):
            raise self.failed(self._truncated())

    async def _exchange(self, body: bytes) -> None:
        response = self._response = await self._send(self._target.url, body, MAX_REDIRECTS)
        try:
            if response.status_code >= 300:
                raise Broken(None, "", await self._error_body(response))
            await self._reader.read(_bytes_of(response))
        finally:
            await response.aclose()

    async def _send(self, url: httpx.URL, body: bytes, redirects: int) -> httpx.Response:
        timeout = {"connect": self._stalls.connect_s, "read": None, "write": None, "pool": None}
        extensions = {"timeout": timeout, "sent": self._was_sent}
        request = self._target.request(url, body, extensions)
        response = await send(request)
        # The answer holds its request: with a way back to us in it, only the collector of cycles would free us all.
        request.extensions.pop("sent", None)
        self._watch.byte_at = asyncio.get_running_loop().time()
        if response.status_code not in (301, 302, 307, 308) or not redirects:
            return response
        onward = _same_host(url, response.headers.get("location", ""))
        if onward is None:
            return response
        await response.aclose()
        return await self._send(onward, body, redirects - 1)

    async def _error_body(self, response: httpx.Response) -> bytes:
        """What an error answer says. It is an error already, so a broken connection only cuts it short."""
        body = b""
        try:
            async for chunk in _bytes_of(response):
                self._watch.byte_at = asyncio.get_running_loop().time()
                body += chunk
                if len(body) >= MAX_ERROR_BYTES:
                    break
        except httpx.HTTPError:
            pass
        return body[:MAX_ERROR_BYTES]

    # --- what it cost ---

    def _was_sent(self) -> None:
        self._sent = True

    def _spent(self, price: spending.PriceNow) -> Spent:
        """What an attempt without an answer has cost."""
        response = self._response
        return spending.of_failure(
            self._fold,
            self._body,
            price,
            sent=self._sent or response is not None,
            status=response.status_code if response is not None else None,
        )

    def spent_on_answer(self, reported: str | None = None) -> Spent:
        return spending.of_answer(self._fold, self._body, self._target.price, reported)

    # --- failures ---

    def failed(self, broken: Broken) -> ModelError:
        """The error for an answer that came and was none."""
        wire = self._evidence(body=broken.body or self._reader.sample)
        if broken.kind is None:
            fault = self._judge(wire)
        else:
            fault = known(broken.kind, sample_of(wire), broken.message, datetime.now(UTC))
        status = wire.status or 0
        said = fault.said if broken.kind is None else broken.message
        if 300 <= status < 400:
            said = (
                f"the address redirects to {wire.headers.get('location') or 'nowhere'}; set the base URL to the target"
            )
        said = said or _plain(wire.body) or ("an error without a word" if status >= 400 else "an empty answer")
        error = self._error(fault, f"{self._target.place} answered {status or 'nothing'}: {said}", wire)
        error.chant = broken.chant if isinstance(broken, Chanting) else None
        return error

    def _truncated(self) -> Broken:
        sample = self._reader.sample
        if not sample.strip():
            return Broken("malformed_response", "an empty answer")
        if not self._fold.progress:
            return Broken("malformed_response", "no part of an answer came", sample)
        return Broken("malformed_response", "a truncated stream: it ended without a finish reason", sample)

    def _stalled(self) -> ModelError:
        if self._watch.expired == "byte_silence":
            what = f"sent nothing for {self._stalls.byte_silence_s:g} s"
        else:
            what = f"sent nothing of an answer for {self._stalls.no_progress_s:g} s, only signs of life"
        wire = self._evidence(transport="ReadTimeout", body=what)
        return self._error(self._judge(wire), f"{self._target.place} {what}", wire)

    def _lost(self, error: Exception) -> ModelError:
        said = str(error) or type(error).__name__
        wire = self._evidence(transport=type(error).__name__, body=said)
        fault = self._judge(wire)
        if self._response is not None:
            message = f"the connection to {self._target.place} broke while it answered: {said}"
        else:
            message = (
                f"no connection to {self._target.place}: {said}; check that the base URL is right and the server up"
            )
        return self._error(fault, message, wire)

    def _evidence(self, *, body: bytes | str, transport: str | None = None) -> WireEvidence:
        response = self._response
        text = body if isinstance(body, str) else body.decode("utf-8", "replace")
        return WireEvidence(
            status=response.status_code if response is not None else None,
            headers={k: self._clean(v) for k, v in response.headers.items() if k not in _SECRET_HEADERS}
            if response is not None
            else {},
            body=self._clean(text),
            transport=transport,
            provider=self._target.provider,
        )

    def _judge(self, wire: WireEvidence) -> ClassifiedError:
        return classify(sample_of(wire), datetime.now(UTC))

    def _error(self, fault: ClassifiedError, message: str, wire: WireEvidence) -> ModelError:
        return ModelError(
            fault.reason, self._clean(message)[:2000], wire, fault=fault, spent=self._spent(self._target.price)
        )

    def _clean(self, text: str) -> str:
        if self._target.secret:
            text = text.replace(self._target.secret, "[redacted:api_key]")
        return make_safe(text).text


def _bytes_of(response: httpx.Response) -> AsyncIterable[bytes]:
    """The body without its content encoding; where there is none, without httpx' bookkeeping per chunk either."""
    if response.headers.get("content-encoding") or not isinstance(response.stream, httpx.AsyncByteStream):
        return response.aiter_bytes()
    return response.stream


def _same_host(url: httpx.URL, location: str) -> httpx.URL | None:
    """Where a redirect may be followed to with the key: the same host, and never from https down to http."""
    try:
        onward = url.join(location)
    except httpx.InvalidURL:
        return None
    if not location or onward.host != url.host or onward.scheme not in ("http", "https"):
        return None
    if onward.scheme == url.scheme:
        return onward if onward.port == url.port else None
    return onward if onward.scheme == "https" else None


def _plain(body: str) -> str:
    """A line of an error body that is no JSON; a page of HTML is only named."""
    text = body.strip()
    if text.startswith("<"):
        return "an HTML page"
    return text.splitlines()[0][:300] if text else ""
