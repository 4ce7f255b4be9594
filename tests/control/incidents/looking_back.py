"""What tests of postmortems share: the facts of a written log, and its numbers worked out again without the fold."""

from decimal import Decimal
from typing import Any

import orjson

from agents.events import decode, draft
from agents.policy.policies import shipped
from control.incidents.postmortem.facts import Facts, NamedPolicy
from control.runs import artifacts, log
from control.runs.models import Run
from tests.control.records import make_run
from tests.fixtures.night import Pen

POLICIES = [NamedPolicy(name=name, version=1, body=shipped(name)) for name in ("default", "strict", "ladder")]
OWN = NamedPolicy(name="off", version=1, body=shipped("off"), own=True)


def facts(pen: Pen, **more: Any) -> Facts:
    given: dict[str, Any] = {
        "run": pen.run,
        "agent": "nightly-fixer",
        "task": "Fix flaky test_invoice_total",
        "project": "default",
        "status": "interrupted",
        "exit_reason": "operator",
        "policy": "off",
        "bodies": pen.bodies,
        "content_of": pen.content_of,
        "policies": [*POLICIES, OWN],
    }
    return Facts(**(given | more))


def filed(pen: Pen, **columns: Any) -> Run:
    """A run whose log in the database is this one, its contents kept."""
    run = make_run(**({"agent": "nightly-fixer", "task": "Fix flaky test_invoice_total", "policy": "off"} | columns))
    told = [decode(body) for body in pen.bodies[1:]]
    drafts = [draft(event.data, at=event.at, turn=event.turn, call=event.call) for event in told]
    done = log.append([log.Batch(run=run.pk, root=run.root, epoch=run.epoch, drafts=drafts)])
    assert not done[0].fenced
    for content in pen.contents.values():
        artifacts.put(content)
    run.refresh_from_db()
    return run


def recounted(bodies: list[bytes]) -> dict[str, Any]:
    """The numbers of a log, from its lines alone. Calls are the same here if every byte of them is."""
    events = [orjson.loads(body) for body in bodies]
    done = [event for event in events if event["kind"] == "call.completed"]
    chats = [event for event in done if event["data"]["operation"] == "chat"]
    paid = [*chats, *(event for event in events if event["kind"] == "call.retried")]
    usages = [event["data"].get("usage") or {} for event in paid]
    asked = {call["call"]: event for event in chats for call in event["data"].get("tool_calls") or ()}
    of_turn: dict[int, Decimal] = {}
    for event in paid:
        of_turn[event["turn"]] = of_turn.get(event["turn"], Decimal(0)) + Decimal(event["data"].get("cost_usd") or 0)
    begun, ended = (event["at"] for event in (events[1], events[-1]))
    return {
        "model_calls": len(chats),
        "tool_calls": len(asked),
        "edits": sum(event["kind"] == "edit.recorded" for event in events),
        "tokens_in": sum(sum(v for k, v in usage.items() if k != "output") for usage in usages),
        "tokens_out": sum(usage.get("output", 0) for usage in usages),
        "cost_usd": sum(of_turn.values(), Decimal(0)),
        "wasted": _wasted(events, asked, of_turn),
        "begun": begun,
        "ended": ended,
    }


def _wasted(events: list[Any], asked: dict[str, Any], of_turn: dict[int, Decimal]) -> tuple[int, Decimal]:
    """How many calls had been made and answered just so since the last content that a file had never held, in logs with
    one call per turn."""
    known: set[tuple[Any, ...]] = set()
    held: dict[str, set[str | None]] = {}
    args = {call["call"]: call["args"] for event in asked.values() for call in event["data"]["tool_calls"]}
    wrote: dict[str, bool] = {}
    number, usd = 0, Decimal(0)
    for event in events:
        data, call = event["data"], event["call"]
        if event["kind"] == "edit.recorded":
            states = held.setdefault(data["path"], {data["before_sha256"]})
            wrote[call] = data["sha256"] not in states
            states.add(data["sha256"])
        elif event["kind"] == "call.completed" and call in asked:
            same = data["name"], args[call], data["status"], data["result"]
            if wrote.get(call):
                known.clear()
            if not wrote[call] if call in wrote else data["status"] == "blocked" or same in known:
                number += 1
                usd += of_turn[event["turn"]]
            if data["status"] != "blocked":
                known.add(same)
    return number, usd
