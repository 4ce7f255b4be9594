"""From parts of a document to HTML; the only place where events become markup."""

from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.template import Context, Template
from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe

from control.dashboard.document import Change, Document, Node
from control.dashboard.folds import TURNS


@cache
def _template(name: str) -> Template:
    return get_template(name).template  # type: ignore[attr-defined,no-any-return]


def node_html(document: Document, node: Node) -> SafeString:
    """A part with all that lies in it. Kept on the part until it or something in it changes."""
    if node.html is None:
        slots = [
            {"id": slot, "html": _join(node_html(document, document.nodes[child]) for child in children)}
            for slot, children in node.slots.items()
        ]
        context = Context({**node.context, "id": node.id, "born": node.born, "slots": slots})
        node.html = _template(f"runs/events/_{node.part}.html").render(context).strip()
    # Rendered by Django with escaping on; a second pass would show the tags.
    return mark_safe(node.html)


def _join(parts: Iterable[str]) -> SafeString:
    return mark_safe("\n".join(parts))


def patch(document: Document, change: Change) -> dict[str, Any]:
    """One step of a live frame: `{op, target, id, html}`, safe to apply twice."""
    return {
        "op": change.op,
        "target": change.target,
        "id": change.node.id,
        "html": node_html(document, change.node),
    }


def part(name: str, context: dict[str, Any]) -> SafeString:
    """A part outside the document (`runs/side/_fuses.html`), by the same templates for page and frame."""
    return mark_safe(_template(name).render(Context(context)).strip())


def turns_html(document: Document, *, last: int, before: int | None = None) -> tuple[SafeString, int | None]:
    """The last cards of the middle column (before a turn, if given) and the turn before which more exist.

    What lies in the column outside any turn (the task, the end) comes with its neighbours.
    """
    nodes = list(document.walk(TURNS))
    if before is not None:
        cut = next((index for index, node in enumerate(nodes) if node.context.get("number") == before), len(nodes))
        nodes = nodes[:cut]
    cards = [index for index, node in enumerate(nodes) if node.part == "turn_started"]
    more: int | None = None
    if len(cards) > last:
        start = cards[-last]
        more = nodes[start].context["number"]
        nodes = nodes[start:]
    return _join(node_html(document, node) for node in nodes), more


def root_html(document: Document, root: str, first: int | None = None) -> SafeString:
    """One of the smaller containers: the outline, its marks, the chart. Only the `first` parts of it, if given."""
    return _join(node_html(document, node) for node in islice(document.walk(root), first))


def warm_up() -> None:
    """Compile the parts before the first page asks for them: half a second that nobody then waits for."""
    folder = Path(settings.BASE_DIR) / "templates"
    for path in sorted(folder.rglob("*.html")):
        _template(path.relative_to(folder).as_posix())
