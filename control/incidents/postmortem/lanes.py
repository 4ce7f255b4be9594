"""What the picture of a run shows: model calls, tool calls by fingerprint, edits by content state, verdicts, people."""

from collections.abc import Mapping, Sequence

from control.incidents.postmortem.record import Chat, Record
from control.incidents.postmortem.repeats import line_of, seq_of
from control.incidents.postmortem.report import Lane, Mark, Moment, MomentKind, Repeat
from control.incidents.postmortem.teaching import Lesson
from control.incidents.postmortem.words import span, told
from control.incidents.postmortem.writes import states_of

_PEOPLE = (MomentKind.OPERATOR, MomentKind.ALERT)


def lanes(
    record: Record, lessons: Sequence[Lesson], repeats: Sequence[Repeat], timeline: Sequence[Moment]
) -> list[Lane]:
    """Top to bottom. The most repeated call has a lane of its own: that is what the eye looks for."""
    colours = {one.fingerprint: one.colour for one in repeats if one.colour is not None}
    first = repeats[0] if repeats and repeats[0].wasted_calls else None
    tools = [(one, _tool(one, colours)) for one in lessons if not one.tool.writes]
    own = [mark for one, mark in tools if first is not None and one.key == first.fingerprint]
    rest = [mark for one, mark in tools if first is None or one.key != first.fingerprint]
    people = [
        Mark(start=one.at, end=one.at, seq=one.seq or 0, look=one.kind.value, text=one.text)
        for one in timeline
        if one.kind in _PEOPLE
    ]
    made = [
        Lane(name="model", marks=tuple(_chat(one, record) for one in record.chats.values())),
        *([Lane(name=first.tool, marks=tuple(own))] if first and own else []),
        Lane(name="edits", marks=tuple(_edits(record))),
        Lane(name="other tools" if own else "tools", marks=tuple(rest)),
        Lane(name="verdicts", marks=tuple(_verdicts(record))),
        Lane(name="people", marks=tuple(people)),
    ]
    return [lane for lane in made if lane.marks or lane.name in ("model", "verdicts", "people")]


def _chat(chat: Chat, record: Record) -> Mark:
    end = chat.ended or record.ended_at
    turn = f"turn {chat.turn}" if chat.turn is not None else "summary"
    text = f"{turn}: model, {span((end - chat.started).total_seconds())}"
    look = "model" if chat.status == "ok" else "broken"
    return Mark(start=chat.started, end=end, seq=chat.done_seq or chat.seq, look=look, text=text)


def _tool(one: Lesson, colours: Mapping[str, int]) -> Mark:
    tool = one.tool
    start = tool.started or tool.asked
    colour = colours.get(one.key)
    look = f"fp-{colour}" if colour is not None else "other"
    if tool.status == "blocked":
        look += " refused"
    text = f"{line_of(tool, 90)}: {told(tool.status or 'no answer', 20)}"
    return Mark(start=start, end=max(start, tool.ended or start), seq=seq_of(tool), look=look, text=text)


def _edits(record: Record) -> list[Mark]:
    states = states_of(record.writes)
    found = []
    for write in record.writes:
        sign, back = states[write.seq]
        text = f"{told(write.path, 80)} is in state {sign}{', again' if back else ''}"
        look = "edit back" if back else "edit"
        found.append(Mark(start=write.at, end=write.at, seq=write.seq, look=look, text=text, letter=sign))
    return found


def _verdicts(record: Record) -> list[Mark]:
    return [
        Mark(
            start=one.at,
            end=one.at,
            seq=one.seq,
            look=f"{told(one.rung, 10)}{' shadow' if one.shadow else ''}",
            text=f"{told(one.rung, 10)}, {told(one.rule, 40)}: {told(one.explanation, 120)}",
        )
        for one in record.verdicts
    ]
