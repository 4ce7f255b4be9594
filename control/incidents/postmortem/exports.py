"""A postmortem as it leaves the house: Markdown, one HTML file, JSON. Secrets are hidden once more on the way out."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings
from django.template.loader import render_to_string

from agents.events import stamp
from agents.policy.redaction import make_safe
from control.incidents.postmortem import charts
from control.incidents.postmortem.document import SECTIONS, Document
from control.incidents.postmortem.markdown import markdown
from control.incidents.postmortem.report import VERSION
from control.incidents.postmortem.sheet import sheet_of
from control.plain import visible

# The picture is drawn from the log; as data it would be the log again.
_LEFT_OUT = frozenset({"lanes"})


def as_markdown(document: Document) -> str:
    return markdown(cleaned(_without_picture(document)))


def as_json(document: Document) -> bytes:
    """`{version, run, state, severity, owner, due, sections, report, …}`; times are RFC 3339, money is text."""
    document = cleaned(_without_picture(document))
    written = document.written
    sections = {name: document.section(name) for name in SECTIONS}
    made = {
        "version": VERSION,
        "run": document.report.about.run,
        "state": written.state,
        "severity": document.severity,
        "owner": written.owner,
        "due": written.due,
        "sections": {
            name: {"heading": one.heading, "text": one.text, "edited": one.number > 0} for name, one in sections.items()
        },
        "report": document.report,
        "factors_struck": sorted(written.struck),
        "factors_added": written.added,
        "action_items": written.actions,
        "actions_proposed": [{"kind": kind, "text": text} for kind, text in sheet_of(document).proposed],
    }
    return orjson.dumps(plain(made), option=orjson.OPT_INDENT_2) + b"\n"


def _without_picture(document: Document) -> Document:
    """Of a long run the marks of its picture are most of it, and only one form of it draws them."""
    return replace(document, report=replace(document.report, lanes=()))


def plain(value: Any) -> Any:
    """Dataclasses, times and money as JSON holds them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value) if one.name not in _LEFT_OUT}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return stamp(value)
    return value.isoformat() if isinstance(value, date) else value


def as_html(document: Document) -> str:
    """One file that asks for nothing: styles inside, pictures drawn in it, no script, a policy that forbids more."""
    document = cleaned(document)
    link = document.run_url if document.site else ""
    incidents = [{"row": one, "href": document.incident_url(one.id)} for one in document.report.incidents]
    more = {"style": _style(), "policy": policy(), "link": link, "incidents": incidents}
    context = {**shown(document), **more}
    return render_to_string("incidents/postmortem/file.html", context)


def cleaned(document: Document) -> Document:
    """The document with every text of it gone through for secrets again, the words of people too, and no hidden
    characters."""
    found: Document = _cleaned(document)
    return found


def _cleaned(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value
    if isinstance(value, str):
        return visible(make_safe(value).text)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _cleaned(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, Mapping):
        return {_cleaned(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, (tuple, frozenset)):
        return type(value)(_cleaned(item) for item in value)
    return value


def shown(document: Document, window: charts.Window | None = None) -> dict[str, Any]:
    """What the parts of page and file show."""
    report = document.report
    return {
        "document": document,
        "report": report,
        "sheet": sheet_of(document),
        "picture": charts.picture(report, window or charts.whole(report)),
        "tokens": charts.tokens(report),
    }


def policy() -> str:
    """The content security policy of the file: its own styles and nothing else."""
    known = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"


@lru_cache(maxsize=1)
def _style() -> str:
    """What the file needs of the console's sheets."""
    folder = settings.BASE_DIR / "static/css"
    names = ("tokens.css", "postmortem.css", "postmortem_file.css")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
