"""The page of one run as a tree of parts that knows when each part was made and last changed, by `seq`.

Page load renders the tree; a live frame renders what changed after a cursor. Both go through the same parts, so they
cannot drift, and a reader that comes back after any pause gets exactly the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Place = Literal["append", "prepend"]


@dataclass(slots=True)
class Node:
    """One part on the page. `parent` is the element id it lies in; `slots` are the containers inside the part."""

    id: str
    parent: str
    part: str
    context: dict[str, Any]
    born: int
    changed: int
    order: int
    place: Place = "append"
    slots: dict[str, list[str]] = field(default_factory=dict)
    html: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step to bring a page up to date: put `node` into `target`, or replace the element of the same id."""

    op: Literal["append", "prepend", "replace"]
    target: str
    node: Node


class Document:
    """A tree with any number of root containers, which the page holds (`turns`, `outline`)."""

    def __init__(self, *roots: str) -> None:
        self.nodes: dict[str, Node] = {}
        self.roots: dict[str, list[str]] = {root: [] for root in roots}
        # Which node a container lies in; roots lie in none.
        self._holder: dict[str, str] = {}
        # Ids in the order of their last change: a difference is read from the end, not searched for.
        self._recent: dict[str, None] = {}

    def put(
        self,
        id: str,
        parent: str,
        part: str,
        seq: int,
        *,
        slots: tuple[str, ...] = (),
        place: Place = "append",
        **context: Any,
    ) -> Node:
        """Make a part, or replace its template and merge its context; its children and its place stay."""
        node = self.nodes.get(id)
        if node is None:
            node = Node(
                id=id,
                parent=parent,
                part=part,
                context=context,
                born=seq,
                changed=seq,
                order=len(self.nodes),
                place=place,
            )
            self.nodes[id] = node
            siblings = self._children(parent)
            siblings.insert(len(siblings) if place == "append" else 0, id)
        else:
            node.part = part
            node.context.update(context)
        for slot in slots:
            node.slots.setdefault(slot, [])
            self._holder[slot] = id
        self._touch(node, seq)
        return node

    def change(self, id: str, seq: int, **context: Any) -> Node | None:
        """Merge new values into a part; None if there is no such part."""
        node = self.nodes.get(id)
        if node is not None:
            node.context.update(context)
            self._touch(node, seq)
        return node

    def holds(self, container: str) -> bool:
        return container in self._holder or container in self.roots

    def _children(self, container: str) -> list[str]:
        if container in self.roots:
            return self.roots[container]
        return self.nodes[self._holder[container]].slots[container]

    def _touch(self, node: Node, seq: int) -> None:
        node.changed = seq
        self._recent.pop(node.id, None)
        self._recent[node.id] = None
        node.html = None
        # What is not rendered lies in nothing that is: above it there is nothing to forget.
        holder = self._holder.get(node.parent)
        while holder is not None and (above := self.nodes[holder]).html is not None:
            above.html = None
            holder = self._holder.get(above.parent)

    def since(self, seq: int) -> list[Change]:
        """What changed after `seq`, outermost parts only, in the order in which the page must apply it."""
        fresh: dict[str, Node] = {}
        for id in reversed(self._recent):
            node = self.nodes[id]
            if node.changed <= seq:
                break
            fresh[id] = node
        found = [node for node in fresh.values() if not self._inside(node, fresh)]
        # In the order of their making, so that new siblings land in order; `_recent` alone would not say.
        found.sort(key=lambda node: node.order)
        return [_change(node, seq) for node in found]

    def _inside(self, node: Node, fresh: dict[str, Node]) -> bool:
        holder = self._holder.get(node.parent)
        while holder is not None:
            if holder in fresh:
                return True
            holder = self._holder.get(self.nodes[holder].parent)
        return False

    def walk(self, root: str) -> Iterator[Node]:
        for id in self.roots[root]:
            yield self.nodes[id]


def _change(node: Node, seq: int) -> Change:
    if node.born > seq:
        return Change(op=node.place, target=node.parent, node=node)
    return Change(op="replace", target=node.id, node=node)
