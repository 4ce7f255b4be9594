"""The history as one model gets it: put right, encoded once per message, and counted as it grows."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agents.engine.transcript import Transcript
from agents.messages import AssistantMessage, Message, SystemMessage, UserMessage
from agents.policy import repair
from agents.policy.budgets import message_tokens
from agents.policy.repair import Change
from agents.ports import ChatModel

# This family of models numbers its calls as `functions.name:0` and loses its way with other ids.
_AS_GIVEN = re.compile(r"[a-zA-Z0-9_.:-]{1,40}")


class Sent:
    """One per model and run. `update` before each request costs what the turn has added."""

    def __init__(self, model: ChatModel, system: SystemMessage, transcript: Transcript) -> None:
        self._model = model
        self._system = system
        self._transcript = transcript
        self._ids = _AS_GIVEN if "kimi" in model.name.lower() else repair.PORTABLE_ID
        self._messages: list[Message] = []
        self._sizes: list[int] = []
        self._taken: set[str] = set()
        self._seen = 0
        self._last: Message | None = None
        self._rewrites = -1
        # Opaque fields of answers up to this event were refused by the provider and stay away.
        self._bare_until = 0
        self.parts: list[bytes] = []
        self.tokens = 0

    @property
    def messages(self) -> Sequence[Message]:
        """What was encoded last, the system message first."""
        return self._messages

    def update(self) -> Sequence[Change]:
        """Take in what is new. Returns what had to be put right for the provider."""
        known, transcript = self._transcript.messages, self._transcript
        same = self._seen and len(known) >= self._seen and known[self._seen - 1] is self._last
        if not same or self._rewrites != transcript.rewrites:
            return self._anew()
        if len(known) == self._seen:
            return ()
        got = repair.added(self._messages, known[self._seen :], taken=self._taken, ids=self._ids)
        self._cut(got.keep)
        self._append(got.messages)
        self._mark()
        return got.changes

    def mend(self) -> Sequence[str]:
        """The whole history once more, as strictly as can be: legal ids, and nothing that only this provider can read.

        Signatures and encrypted thinking that no longer verify are refused as a broken history, and are no loss.
        """
        self._ids = repair.PORTABLE_ID
        behind, self._bare_until = self._bare_until, self._transcript.seq
        said = [change.detail for change in self._anew()]
        left_out = sum(isinstance(m, AssistantMessage) and bool(m.opaque) and s > behind for m, s in self._all())
        return [*said, f"provider fields of {left_out} answers left out"] if left_out else said

    def with_(self, *more: Message) -> list[bytes]:
        """The parts of one request with something behind them that does not stay in the history."""
        behind = self._messages[-1] if self._messages else None
        if isinstance(behind, UserMessage) and more and isinstance(more[0], UserMessage):
            # Strict servers want the roles to alternate.
            joined = replace(behind, text=f"{behind.text}\n\n{more[0].text}")
            return [*self.parts[:-1], *(self._model.encode_message(m) for m in (joined, *more[1:]))]
        return [*self.parts, *(self._model.encode_message(m) for m in more)]

    def _anew(self) -> Sequence[Change]:
        messages = [self._plain(m, seq) for m, seq in self._all()]
        fixed, changes = repair.repair([self._system, *messages], asking=True, ids=self._ids)
        self._cut(0)
        self._append(fixed)
        self._mark()
        return changes

    def _all(self) -> Sequence[tuple[Message, int]]:
        return list(zip(self._transcript.messages, self._transcript.seqs, strict=True))

    def _plain(self, message: Message, seq: int) -> Message:
        if seq <= self._bare_until and isinstance(message, AssistantMessage) and message.opaque:
            return replace(message, opaque=None, origin=None)
        return message

    def _cut(self, keep: int) -> None:
        for message in self._messages[keep:]:
            if isinstance(message, AssistantMessage):
                self._taken.difference_update(call.wire_id for call in message.tool_calls)
        self.tokens -= sum(self._sizes[keep:])
        del self._messages[keep:], self._sizes[keep:], self.parts[keep:]

    def _append(self, messages: Sequence[Message]) -> None:
        for message in messages:
            size = message_tokens(message)
            self._messages.append(message)
            self._sizes.append(size)
            self.tokens += size
            self.parts.append(self._model.encode_message(message))
            if isinstance(message, AssistantMessage):
                self._taken.update(call.wire_id for call in message.tool_calls)

    def _mark(self) -> None:
        known = self._transcript.messages
        self._seen, self._rewrites = len(known), self._transcript.rewrites
        self._last = known[-1] if known else None
