"""What a document keeps of its rendering is never older than its parts."""

import random

from control.dashboard.document import Document, Node
from control.dashboard.render import node_html, patch


def _card(document: Document, number: int, parent: str, seq: int) -> None:
    """A card that holds cards, as a turn holds what happened in it."""
    name = f"turn-{number}"
    slots = (f"{name}-head-slot", f"{name}-body")
    document.put(name, parent, "turn_started", seq, slots=slots, number=number)


def _afresh(document: Document, node: Node) -> str:
    """Rendered with nothing kept."""
    for other in document.nodes.values():
        other.html = None
    return node_html(document, node)


def test_what_changes_deep_inside_shows_in_all_that_was_rendered_around_it():
    document = Document("turns")
    for number, parent in enumerate(("turns", "turn-0-body", "turn-1-body")):
        _card(document, number, parent, number + 1)
    outer = document.nodes["turn-0"]
    before = node_html(document, outer)
    document.change("turn-2", 9, number=99)
    assert node_html(document, outer) != before
    assert 'data-turn="99"' in node_html(document, outer)
    _card(document, 7, "turn-2-body", 10)
    assert 'data-turn="7"' in node_html(document, outer)


def test_no_order_of_changes_and_renderings_leaves_something_old():
    chance = random.Random(11)
    document = Document("turns")
    _card(document, 0, "turns", 1)
    for seq in range(2, 400):
        some = chance.choice(list(document.nodes.values()))
        match chance.randrange(3):
            case 0:
                _card(document, seq, chance.choice(list(some.slots)), seq)
            case 1:
                document.change(some.id, seq, number=seq * 1000)
            case 2:
                # Whole, in part, or as the frame of a live page that shows what changed since.
                node_html(document, some)
                for change in document.since(seq - chance.randrange(6)):
                    patch(document, change)
    kept = {id: node_html(document, node) for id, node in document.nodes.items()}
    for id, node in document.nodes.items():
        assert kept[id] == _afresh(document, node), id
