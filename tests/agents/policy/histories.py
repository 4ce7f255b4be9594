"""Histories for tests: soups of any messages, valid ones, and what strict providers demand of them."""

import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import httpx
import orjson
from hypothesis import strategies as st

from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agents.ports import ChatRequest
from agents.providers.anthropic import AnthropicChat
from agents.providers.openai import OpenAIChat
from agents.spec import ModelSpec

LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
OPENAI = OpenAIChat(ModelSpec(model="m", base_url="http://x/v1"), httpx.URL("http://x/v1/chat/completions"), None)
ANTHROPIC = AnthropicChat(ModelSpec(model="m", base_url="http://x/v1"), httpx.URL("http://x/v1/messages"), None)


def note(words: str) -> str:
    return f"[User note: {words}]"


def call(key: str, name: str = "read_file", args: str = "{}") -> ToolCall:
    return ToolCall(call=key, wire_id=f"w{key}", name=name, args=args)


def asked(*keys: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(text=text, tool_calls=tuple(map(call, keys)))


def result(key: str, text: str = "fine", name: str = "read_file") -> ToolMessage:
    return ToolMessage(call=key, wire_id=f"w{key}", name=name, text=text)


# --- what providers demand ---------------------------------------------------------------------------------------


def openai_objects(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [orjson.loads(OPENAI.encode_message(message)) for message in messages]


def openai_complaint(messages: Sequence[Message]) -> str | None:
    """What a strict chat completions server would say; None if it accepts the history."""
    sent = openai_objects(messages)
    due: list[str] = []
    seen: set[str] = set()
    spoken = [m for m in sent if m["role"] != "system"]
    if (
        not spoken
        or spoken[0]["role"] != "user"
        or sent[: len(sent) - len(spoken)] != [m for m in sent if m["role"] == "system"]
    ):
        return "the conversation begins with a user message, behind the system messages"
    before = ""
    for at, message in enumerate(spoken):
        role, content = message["role"], message.get("content")
        if role == "tool":
            if not due or message["tool_call_id"] != due.pop(0):
                return f"message {at}: a result that answers no call, or out of order"
        elif due:
            return f"message {at}: calls {due} have no results"
        if role == before != "tool":
            return f"message {at}: roles do not alternate"
        calls = message.get("tool_calls", [])
        for one in calls:
            if not LEGAL.fullmatch(one["function"]["name"]) or len(one["function"]["name"]) > 64:
                return f"message {at}: bad function name {one['function']['name']!r}"
            if one["id"] in seen or not 0 < len(one["id"]) <= 40:
                return f"message {at}: bad id {one['id']!r}"
            if not isinstance(orjson.loads(one["function"]["arguments"]), dict):
                return f"message {at}: arguments are no object"
            seen.add(one["id"])
            due.append(one["id"])
        if not (content and content.strip()) and not (role == "assistant" and calls and content is None):
            return f"message {at}: empty content"
        before = role
    return f"calls {due} have no results" if due else None


def anthropic_complaint(messages: Sequence[Message]) -> str | None:
    """The same for the messages API, on the body as it goes out."""
    parts = [ANTHROPIC.encode_message(message) for message in messages]
    sent = orjson.loads(ANTHROPIC._body(ChatRequest(parts=parts, tools=None), 100))["messages"]
    seen: set[str] = set()
    due: list[str] = []
    for at, message in enumerate(sent):
        if message["role"] != ("user", "assistant")[at % 2]:
            return f"message {at}: roles do not alternate from user"
        blocks = message["content"]
        if not blocks or any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            return f"message {at}: empty content"
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if results != due or [b["type"] for b in blocks[: len(results)]] != ["tool_result"] * len(results):
            return f"message {at}: {results} where results for {due} are due first"
        due = [b["id"] for b in blocks if b["type"] == "tool_use"]
        for block in (b for b in blocks if b["type"] == "tool_use"):
            if not LEGAL.fullmatch(block["id"]) or block["id"] in seen or not LEGAL.fullmatch(block["name"]):
                return f"message {at}: bad id or name in {block}"
            seen.add(block["id"])
        texts = [b["text"] for b in blocks if b["type"] == "text"]
        if at == len(sent) - 1 and message["role"] == "assistant" and texts and texts[-1] != texts[-1].rstrip():
            return "the last answer ends in blanks"
    if due:
        return f"calls {due} have no results"
    return None if sent else "no messages"


def complaint(messages: Sequence[Message]) -> str | None:
    return openai_complaint(messages) or anthropic_complaint(messages)


# --- histories ---------------------------------------------------------------------------------------------------

words = st.sampled_from(["", " ", "\n", "yes", "look here ", "Go on.", "第一步", "a\n\nb", "x" * 50])
human = st.sampled_from(["fix it", "never touch prod", "Go on.", "use python]", "a\n\n[User note: odd"])
_keys = st.sampled_from(["a", "b", "c", "d", ""])
_wires = st.sampled_from(["w1", "w2", "w1_2", "", "a.b:0", "é", "z" * 60])
_names = st.sampled_from(["read_file", "run.it", "", "名前", "n" * 80])
_args = st.sampled_from(["{}", "{", "", "[1]", '{"path":"a"}'])
_calls = st.builds(ToolCall, call=_keys, wire_id=_wires, name=_names, args=_args)
_results = st.builds(
    lambda text, notes, **rest: ToolMessage(
        text="\n\n".join([t for t in [text] if t] + [note(n) for n in notes]), **rest
    ),
    text=words,
    notes=st.lists(human, max_size=2),
    call=_keys,
    wire_id=_wires,
    name=_names,
)
_assistants = st.builds(
    AssistantMessage, text=words, tool_calls=st.lists(_calls, max_size=3).map(tuple), opaque=st.just({"k": "v"})
)
_users = st.one_of(human.map(lambda t: UserMessage(text=t)), words.map(lambda t: UserMessage(text=t)))
_systems = words.map(lambda t: SystemMessage(text=t))

soups = st.lists(st.one_of(_users, _assistants, _results, _results, _systems), max_size=12)


@st.composite
def valid(draw: st.DrawFn, turns: int = 8, long: bool = False) -> list[Message]:
    """A task, then turns with calls answered in order, notes behind results, now and then an answer and a note."""
    number = count()
    said = st.text("ab \n漢é.{", min_size=1, max_size=3000 if long else 40).map(lambda t: f"it says {t.strip()}.")
    messages: list[Message] = [UserMessage(text="task: " + draw(human))]
    for _ in range(draw(st.integers(0, turns))):
        if draw(st.integers(0, 4)) == 0:
            messages += [AssistantMessage(text=draw(said)), UserMessage(text=note(draw(human)))]
            continue
        keys = [f"k{next(number)}" for _ in range(draw(st.integers(1, 3)))]
        messages.append(asked(*keys, text=draw(st.one_of(st.just(""), said))))
        messages += [result(key, draw(said)) for key in keys]
        if draw(st.integers(0, 3)) == 0:
            last = messages[-1]
            messages[-1] = result(keys[-1], f"{last.text}\n\n{note(draw(human))}")
    return messages
