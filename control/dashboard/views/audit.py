"""The audit trail: who did what to what, why, with what came of it; searched, paged and exported, never changed."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from control.accounts import audit, trail
from control.accounts.models import AuditEntry
from control.dashboard import rooms
from control.dashboard.policy_changes import Change, compared

CHANGES_SHOWN = 40


def _query(request: HttpRequest) -> trail.Query:
    given = {name: request.GET.get(name, "").replace("\x00", "").strip()[:300] for name in ("q", "since", "until")}
    return trail.Query(**given)


def _changes(row: AuditEntry) -> list[Change]:
    """Before and after as values that differ; everything where there is only one of them."""
    before, after = ({"value": value} if not isinstance(value, dict) else value for value in (row.before, row.after))
    told = compared(before if row.before is not None else {}, after if row.after is not None else {})
    return [change for change in told if change.kind != "same"]


def _item(row: AuditEntry) -> dict[str, Any]:
    changes = _changes(row)
    kind, _, name = row.target.partition(":")
    return {
        "row": row,
        "changes": changes[:CHANGES_SHOWN],
        "hidden": max(0, len(changes) - CHANGES_SHOWN),
        "filter": compared({}, row.filter) if isinstance(row.filter, dict) else [],
        "run": name if kind == "run" and len(name) == 36 else "",
        "good": row.result == "ok",
    }


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    if answer := rooms.refused(request, "read_audit", "audit", "/"):
        return answer
    query = _query(request)
    rows, more = trail.page_of(trail.select(query), request.GET.get("before", ""))
    context = {
        "section": "audit",
        "query": query,
        "items": [_item(row) for row in rows],
        "found_by": urlencode(query.asked),
        "next": f"?{urlencode({**query.asked, 'before': more})}" if more else "",
        "later": bool(request.GET.get("before")),
        "may_export": rooms.may(request, "export_audit"),
    }
    return render(request, "audit/list.html", context)


@login_required
@require_safe
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """All rows that the query means, as `csv` or `jsonl`; the export is a row itself."""
    if answer := rooms.refused(request, "export_audit", "audit", "/audit/"):
        return answer
    query = _query(request)
    audit.record(request, "export_audit", "audit", filter=query.asked or None, after={"form": form})
    rows = trail.select(query)
    lines, kind = (trail.as_csv(rows), "text/csv") if form == "csv" else (trail.jsonl(rows), "application/x-ndjson")
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="audit-{timezone.now():%Y-%m-%d}.{form}"'
    response["Cache-Control"] = "no-store"
    return response
