"""Routes of postmortems: the report of a finished run as data, as Markdown, and as one HTML file."""

from django.http import HttpRequest, HttpResponse
from ninja import Router

from control.api.answers import raw
from control.api.auth import Needs
from control.api.errors import ApiError
from control.api.finding import find_run
from control.incidents.postmortem import exports
from control.incidents.postmortem.document import Document
from control.incidents.postmortem.filing import document_of
from control.incidents.postmortem.fold import NotFinished

router = Router(tags=["postmortems"])


def _document(request: HttpRequest, run_id: str) -> Document:
    run = find_run(run_id)
    try:
        return document_of(run, request.build_absolute_uri("/"))
    except NotFinished:
        message = "This run has not ended yet. Its postmortem is there as soon as its log has a last event."
        raise ApiError("run_not_finished", message, status=409, detail={"status": run.status}) from None


def _named(response: HttpResponse, run_id: str, ending: str) -> HttpResponse:
    response["Content-Disposition"] = f'inline; filename="postmortem-{run_id[:36]}.{ending}"'
    return response


@router.get("/runs/{run_id}/postmortem.json", auth=Needs("view"), summary="The postmortem of a finished run, as data")
def as_json(request: HttpRequest, run_id: str) -> HttpResponse:
    """Report, sections and action items. Secrets are hidden again; 409 `run_not_finished` while the run goes on."""
    document = _document(request, run_id)
    return _named(raw(exports.as_json(document)), document.report.about.run, "json")


@router.get("/runs/{run_id}/postmortem.md", auth=Needs("view"), summary="The postmortem as a Markdown document")
def as_markdown(request: HttpRequest, run_id: str) -> HttpResponse:
    document = _document(request, run_id)
    made = raw(exports.as_markdown(document).encode(), content_type="text/markdown; charset=utf-8")
    return _named(made, document.report.about.run, "md")


@router.get("/runs/{run_id}/postmortem.html", auth=Needs("view"), summary="The postmortem as one HTML file")
def as_html(request: HttpRequest, run_id: str) -> HttpResponse:
    """Styles and pictures are inside; it asks for nothing and runs nothing."""
    document = _document(request, run_id)
    made = raw(exports.as_html(document).encode(), content_type="text/html; charset=utf-8")
    made["Content-Security-Policy"] = f"{exports.policy()}; frame-ancestors 'none'"
    return _named(made, document.report.about.run, "html")
