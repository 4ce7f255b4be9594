"""Makes a history one that every provider accepts: each call answered once and in order, nothing empty, ids unique."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agents.policy.human import human_text, joined
from agents.policy.pairing import pair

NO_RESULT = "No result was recorded for this call: whether it ran is unknown. Check before doing it again."
NO_OUTPUT = "(no output)"
OPENING = "Go on."

# What OpenAI and Anthropic both accept; OpenAI also caps the id of a call at 40 characters.
PORTABLE_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_MAX_ID = 40
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_MAX_NAME = 64


class Kind(StrEnum):
    RESULT_MISSING = "result_missing"
    RESULT_MOVED = "result_moved"
    RESULT_ORPHANED = "result_orphaned"
    NOTE_KEPT = "note_kept"
    BLANK_RESULT = "blank_result"
    BLANK_MESSAGE = "blank_message"
    TRAILING_BLANKS = "trailing_blanks"
    MERGED = "merged"
    CALL_KEY = "call_key"
    WIRE_ID = "wire_id"
    TOOL_NAME = "tool_name"
    SYSTEM_MOVED = "system_moved"
    OPENING = "opening"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that was put right; `detail` is for people."""

    kind: Kind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a turn adds, put right: `history[:keep]` followed by `messages`. Normally nothing of the history changes."""

    keep: int
    messages: tuple[Message, ...]
    changes: tuple[Change, ...]


def repair(
    messages: Sequence[Message], *, asking: bool = False, ids: re.Pattern[str] = PORTABLE_ID
) -> tuple[list[Message], list[Change]]:
    """The whole history put right, and what was changed; a valid one stays the same objects. Idempotent, linear.

    Nothing that a person wrote is lost: notes inside a result that has to go become a user message. `asking`: the
    history is about to be sent, so the last word must not be the model's. `ids`: which wire ids may stay as they are.
    """
    changes: list[Change] = []
    fixed = _mend(_systems_first(messages, changes), changes, {}, ids)
    first = next((i for i, m in enumerate(fixed) if not isinstance(m, SystemMessage)), len(fixed))
    if first == len(fixed) or not isinstance(fixed[first], UserMessage):
        changes.append(Change(kind=Kind.OPENING, detail="the history did not begin with a user message"))
        fixed.insert(first, _filler())
    if asking and isinstance(fixed[-1], AssistantMessage):
        changes.append(Change(kind=Kind.OPENING, detail="the model had the last word"))
        fixed.append(_filler())
    return fixed, changes


def added(
    history: Sequence[Message],
    new: Sequence[Message],
    *,
    taken: Collection[str] | None = None,
    ids: re.Pattern[str] = PORTABLE_ID,
) -> Added:
    """The same for what one turn adds to a valid history, at the cost of what it adds.

    `taken` holds the wire ids of the history, without those of `new`; None looks them up, which walks it once.
    """
    border = _last_group(history)
    if taken is not None and _is_whole_turn(history, border, new, taken, ids):
        return Added(keep=len(history), messages=tuple(new), changes=())
    if taken is None:
        taken = {c.wire_id for m in history[:border] if isinstance(m, AssistantMessage) for c in m.tool_calls}
    open_group = list(history[border:])
    own = {call.wire_id for m in open_group if isinstance(m, AssistantMessage) for call in m.tool_calls}
    changes: list[Change] = []
    fixed = _mend([*open_group, *new], changes, dict.fromkeys(set(taken) - own, 1), ids)
    same = 0
    while same < min(len(open_group), len(fixed)) and fixed[same] is open_group[same]:
        same += 1
    return Added(keep=border + same, messages=tuple(fixed[same:]), changes=tuple(changes))


def _is_whole_turn(
    history: Sequence[Message], border: int, new: Sequence[Message], taken: Collection[str], ids: re.Pattern[str]
) -> bool:
    """Whether this is an answer with calls and their results in order, with nothing to put right: nearly every turn."""
    answer, last = new[0] if new else None, history[-1] if history else None
    if not isinstance(answer, AssistantMessage) or not isinstance(last, (UserMessage, ToolMessage)):
        return False
    calls = answer.tool_calls
    if not calls or len(new) != len(calls) + 1 or (answer.text and not answer.text.strip()):
        return False
    before = [c for m in history[border:] if isinstance(m, AssistantMessage) for c in m.tool_calls]
    keys, wire_ids = {c.call for c in before}, {c.wire_id for c in before}
    for call, result in zip(calls, new[1:], strict=True):
        wire_id = call.wire_id
        if (
            not isinstance(result, ToolMessage)
            or (result.call, result.wire_id, result.name) != (call.call, wire_id, call.name)
            or not call.call
            or call.call in keys
            or wire_id in taken
            or wire_id in wire_ids
            or not ids.fullmatch(wire_id)
            or call.name != legal_name(call.name)
            or not result.text.strip()
        ):
            return False
        keys.add(call.call)
        wire_ids.add(wire_id)
    return True


def legal_name(name: str) -> str:
    """A tool's name as every provider accepts it in a history."""
    return _ILLEGAL.sub("_", name)[:_MAX_NAME] or "unnamed"


def _filler() -> UserMessage:
    return UserMessage(text=OPENING, ours=(OPENING,))


def _last_group(history: Sequence[Message]) -> int:
    """Where the last answer with its results begins, or the last user message if that comes later."""
    at = len(history)
    while at and isinstance(history[at - 1], ToolMessage):
        at -= 1
    return max(at - 1, 0)


def _mend(
    messages: Sequence[Message], changes: list[Change], taken: dict[str, int], ids: re.Pattern[str]
) -> list[Message]:
    arranged = list(_arranged(messages, changes))
    filled = [kept for one in arranged if (kept := _filled(one, changes)) is not None]
    named = list(_named(_merged(filled, changes), changes, taken, ids))
    last = named[-1] if named else None
    if isinstance(last, AssistantMessage) and last.text != last.text.rstrip():
        changes.append(Change(kind=Kind.TRAILING_BLANKS, detail="the last answer ended in blanks"))
        named[-1] = replace(last, text=last.text.rstrip())
    return named


# --- order and answers -------------------------------------------------------------------------------------------


def _systems_first(messages: Sequence[Message], changes: list[Change]) -> list[Message]:
    leading = 0
    while leading < len(messages) and isinstance(messages[leading], SystemMessage):
        leading += 1
    later = [m for m in messages[leading:] if isinstance(m, SystemMessage)]
    if not later:
        return list(messages)
    changes += [Change(kind=Kind.SYSTEM_MOVED, detail="a system message stood among the turns") for _ in later]
    return [*messages[:leading], *later, *(m for m in messages[leading:] if not isinstance(m, SystemMessage))]


def _arranged(messages: Sequence[Message], changes: list[Change]) -> Iterator[Message]:
    """Every call followed by its result; results that answer nothing leave only what people wrote in them."""
    answers = pair(messages)
    used = set(answers.values())
    said: dict[
        str, str
    ] = {}  # notes that stand in a kept result, by call: a copy of that result brings none of its own
    for at in used:
        said[_key(messages[at])] = said.get(_key(messages[at]), "") + human_text(messages[at])
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if at not in used:
                yield from _orphan(message, said, changes)
            continue
        yield message
        if isinstance(message, AssistantMessage):
            due = at + 1
            for place, call in enumerate(message.tool_calls):
                found = answers.get((at, place))
                yield _answer(messages, found, due, call, changes)
                due += found is not None


def _answer(
    messages: Sequence[Message], at: int | None, due: int, call: ToolCall, changes: list[Change]
) -> ToolMessage:
    if at is None:
        changes.append(Change(kind=Kind.RESULT_MISSING, detail=f"{call.name} {call.wire_id} had no result"))
        return ToolMessage(call=call.call, wire_id=call.wire_id, name=call.name, text=NO_RESULT)
    result = messages[at]
    assert isinstance(result, ToolMessage)
    if at != due:
        changes.append(Change(kind=Kind.RESULT_MOVED, detail=f"the result of {call.name} {call.wire_id} was elsewhere"))
    return result


def _orphan(result: ToolMessage, said: dict[str, str], changes: list[Change]) -> Iterator[Message]:
    changes.append(Change(kind=Kind.RESULT_ORPHANED, detail=f"a result of {result.name} {result.wire_id} for no call"))
    notes = human_text(result)
    if notes and notes not in said.get(result.call, ""):
        changes.append(Change(kind=Kind.NOTE_KEPT, detail="a note in it became a message of its own"))
        said[result.call] = said.get(result.call, "") + notes
        yield UserMessage(text=notes)


def _key(message: Message) -> str:
    return message.call if isinstance(message, ToolMessage) else ""


# --- blanks and neighbours ---------------------------------------------------------------------------------------


def _filled(message: Message, changes: list[Change]) -> Message | None:
    """The message with something to read in it, or None."""
    if message.text.strip():
        return message
    if isinstance(message, ToolMessage):
        changes.append(Change(kind=Kind.BLANK_RESULT, detail=f"{message.name} {message.wire_id} had said nothing"))
        return replace(message, text=NO_OUTPUT)
    if isinstance(message, AssistantMessage) and message.tool_calls:
        if not message.text:
            return message
        changes.append(Change(kind=Kind.TRAILING_BLANKS, detail="an answer held only blanks beside its calls"))
        return replace(message, text="")
    changes.append(Change(kind=Kind.BLANK_MESSAGE, detail=f"an empty {type(message).__name__}"))
    return None


def _merged(messages: Sequence[Message], changes: list[Change]) -> list[Message]:
    """User next to user and answer next to answer as one: some servers want strict alternation."""
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            out[-1] = joined((last, message))
        elif isinstance(message, AssistantMessage) and isinstance(last, AssistantMessage):
            # Only an answer without calls can stand here; its opaque fields belong to a turn of its own that is over.
            texts = (text for text in (last.text.rstrip(), message.text) if text)
            out[-1] = replace(message, text="\n\n".join(texts))
        else:
            out.append(message)
            continue
        changes.append(Change(kind=Kind.MERGED, detail=f"two neighbours of {type(message).__name__}"))
    return out


# --- ids and names -----------------------------------------------------------------------------------------------


def _named(
    messages: Sequence[Message], changes: list[Change], taken: dict[str, int], ids: re.Pattern[str]
) -> Iterator[Message]:
    """Keys and wire ids unique, names legal, the same on call and result. Expects every call answered in order."""
    keys: dict[str, int] = {}
    due: list[ToolCall] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = tuple(_call(call, changes, keys, taken, ids) for call in message.tool_calls)
            due = list(calls)
            yield message if all(map(_is, calls, message.tool_calls)) else replace(message, tool_calls=calls)
        elif isinstance(message, ToolMessage):
            call = due.pop(0)
            yield _matching(message, call, changes)
        else:
            yield message


def _is(one: object, other: object) -> bool:
    return one is other


def _call(
    call: ToolCall, changes: list[Change], keys: dict[str, int], taken: dict[str, int], ids: re.Pattern[str]
) -> ToolCall:
    key = _unique(call.call or call.wire_id or "call", keys, len(call.call) + 12)
    wire_id = call.wire_id if ids.fullmatch(call.wire_id) else _ILLEGAL.sub("_", call.wire_id)[:_MAX_ID]
    wire_id = _unique(wire_id or "call", taken, max(_MAX_ID, len(wire_id)))
    name = legal_name(call.name)
    if (key, wire_id, name) == (call.call, call.wire_id, call.name):
        return call
    if key != call.call:
        changes.append(Change(kind=Kind.CALL_KEY, detail=f"{call.name} had a key that is not its own"))
    if wire_id != call.wire_id:
        changes.append(Change(kind=Kind.WIRE_ID, detail=f"{call.wire_id!r} is now {wire_id!r}"))
    if name != call.name:
        changes.append(Change(kind=Kind.TOOL_NAME, detail=f"{call.name!r} is now {name!r}"))
    return replace(call, call=key, wire_id=wire_id, name=name)


def _matching(result: ToolMessage, call: ToolCall, changes: list[Change]) -> ToolMessage:
    if (result.call, result.wire_id, result.name) == (call.call, call.wire_id, call.name):
        return result
    if result.wire_id != call.wire_id:
        changes.append(Change(kind=Kind.WIRE_ID, detail=f"the result of {call.wire_id!r} said {result.wire_id!r}"))
    return ToolMessage(call=call.call, wire_id=call.wire_id, name=call.name, text=result.text)


def _unique(wanted: str, taken: dict[str, int], limit: int) -> str:
    """The text as it is, or with a number behind it; `taken` remembers it, and where to go on counting."""
    candidate, n = wanted, taken.get(wanted, 1)
    while candidate in taken:
        n += 1
        candidate = f"{wanted[: limit - len(str(n)) - 1]}_{n}"
    taken[candidate] = 1
    taken[wanted] = n
    return candidate
