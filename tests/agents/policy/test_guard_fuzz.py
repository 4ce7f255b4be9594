"""Nothing that a model or a tool may say makes the guard raise, and what it remembers stays bounded."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.policy.asked import Answered, Asked, Hints
from agents.policy.contents import edited
from agents.policy.guard import Guard
from agents.policy.recorded import judged_line
from tests.agents.policy.guarding import policy

TEXT = st.text(st.characters(), max_size=60)
SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.just("\ud800"), st.just("9" * 400))
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(TEXT, st.integers(), st.none()), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = [
    "bash",
    "read_file",
    "send_email",
    "edit_file",
    "TodoWrite",
    "think",
    "delegate",
    "wait",
    "click",
    "run_sql",
    "发送",
    "",
]
TOOLS = st.one_of(st.sampled_from(NAMES), TEXT)
COMMANDS = st.sampled_from(["sleep 5; ls", "git commit -m x", "'", "a | b && c > d", "sed -i s/a/b/ f", "\\"])
ARGS = st.one_of(VALUE, st.fixed_dictionaries({"command": st.one_of(COMMANDS, VALUE), "path": VALUE, "content": VALUE}))
RESULTS = st.one_of(
    TEXT, VALUE.map(repr), st.sampled_from(["Error: x", '{"id": 1}', "[" * 2_000, "{" * 2_000, "5%", "1/0"])
)
CALL = st.fixed_dictionaries(
    {
        "tool": TOOLS,
        "args": ARGS,
        "result": RESULTS,
        "error": st.booleans(),
        "edits": st.dictionaries(TEXT, TEXT, max_size=2),
    }
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CALL, max_size=12), st.booleans())
def test_no_sequence_makes_the_guard_raise(calls: list[dict[str, Any]], together: bool) -> None:
    for name in ("default", "strict", "ladder"):
        guard = Guard(policy(name))
        for n, one in enumerate(calls + calls, 1):
            asked = Asked(call=n, batch=n // 3 if together else n, tool=one["tool"], args=one["args"], hints=Hints())
            guard.judge(asked)
            guard.observe(
                n,
                Answered(
                    text=one["result"], is_error=one["error"], edits={p: edited(c) for p, c in one["edits"].items()}
                ),
            )
        guard.person_spoke("again")
        guard.said("text", 90)
        guard.compressed(91)
        Guard(policy(name), json.loads(json.dumps(guard.state())))


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.binary(max_size=80), VALUE.map(lambda value: json.dumps(repr(value)).encode())))
def test_no_line_makes_judge_raise(line: bytes) -> None:
    text, _ = judged_line(1, line, policy())
    json.loads(text)


def test_cyclic_looking_and_huge_arguments_are_read() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = {"a": [deep]}
    wide = {f"k{n}": n for n in range(5_000)}
    guard = Guard(policy())
    for n, args in enumerate((deep, wide, "{" * 10_000, {"s": "x" * 1_000_000}), 1):
        guard.judge(Asked(call=n, batch=n, tool="t", args=args))
        guard.observe(n, Answered(text="y\n" * 300_000))


def test_memory_stays_bounded() -> None:
    guard = Guard(policy())
    sizes = []
    for n in range(1, 3_001):
        kind = ("read_file", "send_email", "edit_file", "bash")[n % 4]
        guard.judge(Asked(call=n, batch=n, tool=kind, args={"path": f"f{n}", "to": f"a{n}", "command": f"echo {n}"}))
        edits = {f"f{n}": edited(str(n))} if kind == "edit_file" else {}
        guard.observe(n, Answered(text=f"line {n}\nother {n}", is_error=n % 7 == 0, edits=edits))
        if n in (2_000, 3_000):
            sizes.append(len(json.dumps(guard.state())))
    assert sizes[1] < sizes[0] * 1.15
    assert sizes[1] < 2_000_000
