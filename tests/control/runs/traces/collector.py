"""A collector for tests: takes OTLP over HTTP, decodes the protobuf, and can refuse or be told to be busy."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Got:
    """One span as it arrived; ids in hexadecimal."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    began: int
    ended: int
    failed: bool
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    resource: dict[str, Any]


@dataclass
class Collector:
    """`refuse(spans)` may answer with a status instead of taking them."""

    spans: list[Got] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuse: Any = None

    def __enter__(self) -> "Collector":
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                spans = decoded(body)
                code = outer.refuse(spans) if outer.refuse else 200
                if code == 200:
                    outer.bodies.append(body)
                    outer.headers.append({**dict(self.headers), "path": self.path})
                    outer.spans.extend(spans)
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def named(self, name: str) -> list[Got]:
        return [span for span in self.spans if span.name == name]


def decoded(body: bytes) -> list[Got]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    return [
        Got(
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            kind=span.kind,
            began=span.start_time_unix_nano,
            ended=span.end_time_unix_nano,
            failed=span.status.code == 2,
            attributes=_plain(span.attributes),
            events=[(event.name, _plain(event.attributes)) for event in span.events],
            resource=_plain(resource.resource.attributes),
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
