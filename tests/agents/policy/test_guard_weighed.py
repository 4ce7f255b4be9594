"""Weighed verdicts: what they rest on, and when the guard looks again."""

import json

import pytest

from agents.policy.asked import Answered, Asked
from agents.policy.guard import Guard
from agents.policy.identity import act_of
from agents.policy.stagnation import Stagnation
from tests.agents.policy.guarding import FIXTURES, policy

PAGES = [
    f"https://docs.example/{part}" for part in ("api", "cli", "faq", "limits", "errors", "hooks", "tokens", "roles")
]


def _read(guard: Guard, number: int, tool: str, args: dict[str, object], text: str, *, failed: bool = False) -> None:
    guard.judge(Asked(call=number, batch=number, tool=tool, args=args))
    guard.observe(number, Answered(text=text, is_error=failed))


def test_evidence_of_a_weighed_verdict_is_the_calls_before_it() -> None:
    named = 0
    for line in (FIXTURES / "sequences_own.jsonl").read_text(encoding="utf-8").splitlines()[:80]:
        row = json.loads(line)
        guard = Guard(policy())
        for number, one in enumerate(row["calls"], 1):
            asked = Asked(call=number, batch=one.get("batch") or number, tool=one["tool"], args=one["args"])
            verdict = None if one["tool"].startswith("__") else guard.judge(asked)
            guard.observe(number, Answered(text=str(one.get("result") or ""), is_error=bool(one.get("is_error"))))
            if verdict is not None and verdict.rule == "stagnation":
                named += 1
                assert all(0 < call < number for call in verdict.evidence), (row["id"], number, verdict.evidence)
    assert named > 3


def test_more_dull_answers_than_before_end_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty calls that are far from a loop are weighed now and then; what turns dull is weighed at once."""
    weighed: list[int] = []
    signs = Stagnation.signs

    def noted(self: Stagnation, act, progress, counts) -> list[float]:  # type: ignore[no-untyped-def]
        weighed.append(act.number)
        return signs(self, act, progress, counts)

    monkeypatch.setattr(Stagnation, "signs", noted)
    guard = Guard(policy())
    for number in range(1, 61):
        # Every other file has the same text but for its number.
        text = f"{number} of the lines" if number % 2 else f"{PAGES[number % 8]} says {'word' * number}"
        _read(guard, number, "read_file", {"path": f"src/module_{number}.py"}, text)
    calm = [one for one in weighed if one > 20]
    assert calm and len(calm) < 8
    for number in range(61, 67):
        _read(guard, number, "fetch", {"url": PAGES[number - 61]}, "error: the name is not known", failed=True)
    assert min(one for one in weighed if one > 61) <= 65


def test_what_a_message_singles_out() -> None:
    text = "Dear Ann. Order 17/b of shop.example is late, see /srv/app and a_b; write to me@x.io. Thanks/"
    act = act_of(Asked(call=1, batch=1, tool="send_email", args={"to": "ann@x.io", "body": text}), {})
    assert act.named == {"17/b", "shop.example", "/srv/app", "a_b;", "me@x.io."}


def test_a_state_without_what_is_new_in_it_can_be_read() -> None:
    guard = Guard(policy())
    for number in range(1, 12):
        _read(guard, number, "search", {"q": f"word {number % 3}"}, "no hits", failed=number % 2 == 0)
    state = json.loads(json.dumps(guard.state()))
    state["stagnation"]["counts"] = state["stagnation"]["counts"][:-1]
    state["stagnation"]["rows"] = [row[:-1] for row in state["stagnation"]["rows"]]
    again = Guard(policy(), state)
    assert again.state()["stagnation"]["rows"][-1][:-1] == state["stagnation"]["rows"][-1]


def test_numbers_that_fall_are_followed_across_a_restart_after_each_call() -> None:
    guard, restarted = Guard(policy()), Guard(policy())
    for number in range(1, 7):
        text = f"{95 - 10 * number} left in the queue of mail"
        _read(guard, number, "queue_depth", {"name": "mail"}, text)
        restarted = Guard(policy(), json.loads(json.dumps(restarted.state())))
        _read(restarted, number, "queue_depth", {"name": "mail"}, text)
    whole, parts = guard.state()["progress"], restarted.state()["progress"]
    assert whole["trend"] == parts["trend"] == [5, 6]
    assert whole["figures"] == parts["figures"]


def test_in_which_order_the_calls_of_a_batch_end_makes_no_difference() -> None:
    asked = [("get_invoice", {"id": 100}), ("nope", {}), ("get_invoice", "{bad json"), ("search", {"q": "late fees"})]
    told = ["Error: connection timed out", "There is no tool named nope", "The arguments are no valid JSON", "3 hits"]
    guards = Guard(policy()), Guard(policy())
    for guard, order in zip(guards, ((0, 1, 2, 3), (2, 3, 1, 0)), strict=True):
        for batch in range(1, 5):
            for n, (tool, args) in enumerate(asked):
                guard.judge(Asked(call=4 * batch + n, batch=batch, tool=tool, args=args))
            for n in order:
                guard.observe(4 * batch + n, Answered(text=told[n], is_error=n < 3))
    assert guards[0].state() == guards[1].state()
