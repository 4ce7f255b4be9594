"""Repair, budget and compression together, as the loop uses them: two hundred turns in a window of 16k tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agents.policy import compression, repair, shortening, summaries
from agents.policy.budgets import Gauge, Room, history_tokens, message_tokens, room
from tests.agents.policy.histories import asked, complaint, note, openai_objects, result

PROMPT = SystemMessage(text="You are careful. " * 40)


def counted(messages: Sequence[Message]) -> int:
    """Tokens as this provider counts them: by another rule than ours, and a quarter more."""
    return sum(len(str(part).encode()) for part in openai_objects(messages)) // 3


class Overflow(Exception):
    """The provider refuses the request as too large."""


@dataclass
class Run:
    """A loop without I/O; `log` holds what a resumed run would fold: messages by seq and compressions."""

    summarise: Callable[[Sequence[Message]], str]
    window: int = 16_384
    room: Room = field(default_factory=lambda: room(16_384, 2048))
    gauge: Gauge = field(default_factory=Gauge)
    messages: list[Message] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    log: list[tuple[str, Any]] = field(default_factory=list)
    compressions: list[tuple[int, int]] = field(default_factory=list)
    overflows: int = 0
    turns: int = 0
    asked_for: int = 0
    refused: int = 0
    refused_at: int = 0
    fixed: int = message_tokens(PROMPT)

    def add(self, *messages: Message) -> None:
        for message in messages:
            self.log.append(("message", message))
            self.messages.append(message)
            self.seqs.append(len(self.log))

    def estimated(self) -> int:
        return self.fixed + history_tokens(self.messages)

    def ask(self) -> None:
        for _ in range(compression.MAX_PER_TURN):
            if not self.room.too_full(self.gauge.tokens(self.estimated())):
                break
            self.compress()
        request = [PROMPT, *self.messages]
        assert repair.repair(request)[1] == []
        self.turns += 1
        if self.turns % 5 == 0:
            assert complaint(request) is None
        if counted(request) > self.window:
            self.overflows += 1
            self.room = self.room.overflowed(self.gauge.tokens(self.estimated()))
            self.compress()
            request = [PROMPT, *self.messages]
            assert counted(request) <= self.window
        self.gauge = self.gauge.measured(self.estimated(), counted(request))

    def compress(self) -> None:
        plan = compression.plan(self.messages, room=self.room, gauge=self.gauge, fixed=self.fixed)
        rested = compression.worth_asking(self.refused, self.turns - self.refused_at)
        if rested and isinstance(plan, compression.Plan) and (got := self.summary(plan)) is not None:
            self.take_in(plan, got)
            return
        stubs = shortening.stubs(self.messages, room=self.room, gauge=self.gauge, fixed=self.fixed)
        if stubs is not None and not self.room.too_full(stubs.after_tokens):
            said = {call: {"keep": keep, "sha256": "ab" * 32} for call, keep in stubs.keep.items()}
            self.log.append(("stubs", said))
            self.messages = shortening.shortened(self.messages, said)
            self.compressions.append((stubs.before_tokens, stubs.after_tokens))
        elif isinstance(plan, compression.Plan):
            got = compression.without_model(plan, self.messages)
            assert isinstance(got, compression.Accepted)
            self.take_in(plan, got)

    def summary(self, plan: compression.Plan) -> compression.Accepted | None:
        request = plan.request_messages
        for _ in range(compression.MAX_ATTEMPTS):
            assert counted(request) <= self.window
            self.asked_for += 1
            got = compression.accept(plan, self.messages, self.summarise(request))
            if isinstance(got, compression.Accepted):
                self.refused = 0
                return got
            request = summaries.again(request, got)
        self.refused, self.refused_at = self.refused + 1, self.turns
        return None

    def take_in(self, plan: compression.Plan, got: compression.Accepted) -> None:
        _, to_seq = compression.span(self.messages, self.seqs, plan)
        self.log.append(("compressed", (to_seq, got.summary)))
        self.messages, self.seqs = got.messages, kept_seqs(self.seqs, plan.to_index)
        self.compressions.append((got.before_tokens, got.after_tokens))

    def resumed(self) -> list[Message]:
        """The messages as a worker would rebuild them from the log."""
        messages: list[Message] = []
        seqs: list[int] = []
        for seq, (kind, data) in enumerate(self.log, start=1):
            if kind == "message":
                messages.append(data)
                seqs.append(seq)
            elif kind == "stubs":
                messages = shortening.shortened(messages, data)
            else:
                to_index = compression.index_of(seqs, data[0])
                messages = compression.compressed(messages, to_index=to_index, summary=data[1])
                seqs = kept_seqs(seqs, to_index)
        return messages


def kept_seqs(seqs: Sequence[int], to_index: int) -> list[int]:
    return [seqs[to_index - 1], *seqs[to_index:]]


def good(request: Sequence[Message]) -> str:
    return "Done: steps so far, all of them noted in notes.md. Found: the bug is in parse.py. Next: the next file. " * 4


def drive(run: Run, turns: int, size: Callable[[int], int]) -> None:
    run.add(UserMessage(text="Task ZX-41. Rule: never touch the prod folder."))
    for turn in range(turns):
        run.ask()
        said = "line of output, 漢字, {json: 1}\n" * (size(turn) // 30)
        last = f"ok\n\n{note(f'note {turn}')}" if turn % 50 == 7 else "ok"
        run.add(asked(f"a{turn}", f"b{turn}", text=f"Step {turn}."))
        run.add(result(f"a{turn}", said), result(f"b{turn}", last))
    run.ask()


def everything(messages: Sequence[Message]) -> str:
    return "\n".join(m.text for m in messages)


@pytest.mark.case("A3-09")
@pytest.mark.parametrize(
    "summarise", [good, lambda _: "", lambda _: "assistant calls read_file"], ids=["good", "empty", "useless"]
)
def test_two_hundred_turns_stay_within_a_small_window_and_lose_no_human_word(summarise: Any) -> None:
    run = Run(summarise=summarise)
    drive(run, 200, lambda turn: 600 + turn * 37 % 1500)
    assert counted([PROMPT, *run.messages]) <= run.window
    assert 3 <= len(run.compressions) <= 60
    assert run.asked_for <= 30  # a summariser that is no use is asked ever more rarely
    assert all(after < before for before, after in run.compressions)
    text = everything(run.messages)
    assert "Task ZX-41. Rule: never touch the prod folder." in text
    assert [n for n in range(7, 200, 50) if f"[User note: note {n}]" not in text] == []
    assert run.resumed() == run.messages


def test_a_single_huge_result_is_cut_where_no_older_turn_can_make_room() -> None:
    run = Run(summarise=good)
    drive(run, 12, lambda turn: 60_000 if turn in (0, 7) else 500)
    assert counted([PROMPT, *run.messages]) <= run.window
    assert run.resumed() == run.messages


def test_a_wrong_window_is_learned_from_the_first_overflow() -> None:
    run = Run(summarise=good, window=9_000, room=room(None))
    drive(run, 60, lambda turn: 900)
    assert run.overflows == 1
    assert run.resumed() == run.messages


def test_what_is_kept_of_a_run_are_its_latest_turns() -> None:
    run = Run(summarise=good)
    drive(run, 80, lambda turn: 1500)
    kept = [m for m in run.messages if isinstance(m, AssistantMessage)]
    assert [m.text for m in kept] == [f"Step {n}." for n in range(80 - len(kept), 80)]
    assert len(kept) >= 2
    assert isinstance(run.messages[-1], ToolMessage)
