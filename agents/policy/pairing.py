"""Which tool result answers which call, in a history whose order and keys cannot be trusted."""

from collections import deque
from collections.abc import Callable, Sequence

from agents.messages import AssistantMessage, Message, ToolCall, ToolMessage

# A call by the index of its message and its place in it; a result by the index of its message.
Slot = tuple[int, int]


def pair(messages: Sequence[Message]) -> dict[Slot, int]:
    """Results by call. Each result answers one call at most; whatever answers none is missing among the values.

    Our own key decides, wherever the result stands; a result with a key that nobody asked for goes by its wire id, to
    the latest open call before it. Linear.
    """
    found: dict[Slot, int] = {}
    taken: set[int] = set()
    asked = {call.call for m in messages if isinstance(m, AssistantMessage) for call in m.tool_calls}
    _claim(messages, found, taken, lambda one: one.call, early=True)
    if len(taken) < sum(isinstance(m, ToolMessage) for m in messages):
        strangers = {i for i, m in enumerate(messages) if isinstance(m, ToolMessage) and m.call in asked}
        _claim(messages, found, taken | strangers, lambda one: one.wire_id, early=False)
    return found


def _claim(
    messages: Sequence[Message],
    found: dict[Slot, int],
    taken: set[int],
    key_of: Callable[[ToolCall | ToolMessage], str],
    *,
    early: bool,
) -> None:
    """One walk by one kind of key. A key asked for twice: the latest message first, its calls in order."""
    open_calls: dict[str, list[deque[Slot]]] = {}
    too_early: dict[str, deque[int]] = {}
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for place, call in enumerate(message.tool_calls):
                key, slot = key_of(call), (at, place)
                if slot in found or not key:
                    continue
                if waiting := too_early.get(key):
                    found[slot] = waiting.popleft()
                    taken.add(found[slot])
                    continue
                groups = open_calls.setdefault(key, [])
                if not groups or groups[-1][-1][0] != at:
                    groups.append(deque())
                groups[-1].append(slot)
        elif isinstance(message, ToolMessage) and at not in taken:
            key = key_of(message)
            if groups := open_calls.get(key, []):
                found[groups[-1].popleft()] = at
                taken.add(at)
                if not groups[-1]:
                    groups.pop()
            elif early and key:
                too_early.setdefault(key, deque()).append(at)
