"""Tools that only drill models use: small services that time out, make progress, turn pages and take notes."""

import asyncio
import json
import secrets
from collections.abc import Mapping
from typing import Any

from agents.errors import ToolError
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.outputs import would

_TIMEOUT_S = 0.02
_NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def _looks(name: str, description: str, parameters: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        concurrency=ConcurrencyClass.SAFE,
        timeout_s=5.0,
        resume=Resume.RERUN,
    )


class GetInvoice:
    """A billing service that never answers."""

    spec = _looks(
        "get_invoice",
        "Look an invoice up in the billing service: its lines, its total and whether it is paid.",
        {
            "type": "object",
            "properties": {
                "invoice_id": {"type": ["string", "integer"], "description": "As printed on it, e.g. INV-100, or 100."},
                "currency": {"type": "string", "description": "In which the total is given; as invoiced by default."},
                "request_id": {"type": "string", "description": "Named in the service's own log."},
            },
            "required": ["invoice_id"],
        },
    )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        await asyncio.sleep(_TIMEOUT_S)
        raise ToolError(
            f"504 Gateway Timeout: the billing service did not answer within {_TIMEOUT_S * 1000:.0f} ms, so nothing "
            "was read. The gateway tried billing-1, billing-2 and billing-3 in turn; all accepted the connection and "
            f"sent no byte. trace_id={secrets.token_hex(8)}",
            kind="timeout",
        )


class JobStatus:
    """A job that is a tenth further at each look."""

    spec = _looks(
        "job_status",
        "Look how far a job of the export service is.",
        {"type": "object", "properties": {"job": {"type": "string"}}, "required": ["job"]},
    )

    def __init__(self) -> None:
        self._percent = 0

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self._percent = min(self._percent + 10, 100)
        state = "done" if self._percent == 100 else "running"
        return ToolOutput(text=json.dumps({"job": args["job"], "state": state, "progress": f"{self._percent} %"}))


class NextPage:
    """A list that keeps its own place: the same call, the next page."""

    PAGES = 7
    spec = _looks("next_page", "The next page of the open orders; takes no arguments.", _NOTHING)

    def __init__(self) -> None:
        self._page = 0

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self._page = min(self._page + 1, self.PAGES)
        first = self._page * 3 - 2
        orders = [{"order": f"A-{1000 + n}", "cents": 250 + n * 37 % 900} for n in range(first, first + 3)]
        return ToolOutput(text=json.dumps({"orders": orders, "more": self._page < self.PAGES}))


class FetchReport:
    """A report behind a server that is overloaded at first."""

    FAILURES = 4
    spec = _looks(
        "fetch_report",
        "Fetch the sales report of a month.",
        {"type": "object", "properties": {"month": {"type": "string"}}, "required": ["month"]},
    )

    def __init__(self) -> None:
        self._tried = 0

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self._tried += 1
        if self._tried <= self.FAILURES:
            raise ToolError("503 Service Unavailable: the report server is overloaded. Try again later.", kind="http")
        return ToolOutput(text=json.dumps({"month": args["month"], "orders": 412, "total_cents": 1_803_250}))


class CreateNote:
    """Answers every note with the same word."""

    spec = ToolSpec(
        name="create_note",
        description="Put a note on the team's board.",
        parameters={
            "type": "object",
            "properties": {"text": {"type": "string", "minLength": 1}},
            "required": ["text"],
        },
        timeout_s=5.0,
    )

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if context.dry_run:
            return would(f"note: {args['text']}")
        self.notes.append(args["text"])
        return ToolOutput(text="Created.")
