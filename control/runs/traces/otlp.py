"""Sends spans to an OpenTelemetry collector, over HTTP with protobuf, as the standard `OTEL_` variables say.

The SDK is loaded here and nowhere else, and only when traces are on. Ids and times come from the log, so its tracer is
not used: finished spans are handed to its exporter.
"""

from collections.abc import Sequence
from datetime import datetime

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from control.runs.traces.spans import Span

_SCOPE = InstrumentationScope("pilothouse")


class Exporter:
    """One connection to the collector; `send` is for one thread."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self._resource = _resource()

    def send(self, spans: Sequence[Span]) -> bool:
        """Whether the collector has taken them. Waits and tries again within OTEL_EXPORTER_OTLP_TIMEOUT (10 s)."""
        made = [self._readable(span) for span in spans]
        return self._exporter.export(made) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, span: Span) -> ReadableSpan:
        attributes = dict(span.attributes)
        if span.fault is not None:
            attributes["error.type"] = span.fault
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace, span.id),
            parent=None if span.parent is None else _context(span.trace, span.parent),
            resource=self._resource,
            attributes=attributes,
            events=[Event(one.name, dict(one.attributes), _nanoseconds(one.at)) for one in span.moments],
            kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.fault) if span.fault is not None else Status(StatusCode.UNSET),
            start_time=_nanoseconds(span.began),
            end_time=_nanoseconds(span.ended),
            instrumentation_scope=_SCOPE,
        )


def _resource() -> Resource:
    """Who sends: as OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say, else by our own name."""
    made = Resource.create()
    if str(made.attributes.get("service.name", "unknown_service")).startswith("unknown_service"):
        made = made.merge(Resource({"service.name": "pilothouse"}))
    return made


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace_id=trace, span_id=span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(moment: datetime) -> int:
    """Exact: a float of seconds has no room for microseconds of today times a billion."""
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
