"""The loop alone asks whoever sits there before it runs what a person must allow."""

from collections.abc import Sequence

import pytest

from agents.engine.alone import LoneRun, Setting
from agents.events import Event
from agents.spec import Limits, ModelSpec
from agents.testing import ScriptedModel, asks
from agents.tools.registry import Registry
from tests.agents.engine.doubles import echo


@pytest.mark.parametrize(("said", "status"), [("approve", "ok"), ("deny", "denied"), ("not now", "denied")])
async def test_a_call_runs_only_if_the_person_there_allows_it(said: str, status: str, monkeypatch: pytest.MonkeyPatch):
    seen: list[Event] = []
    asked: list[str] = []

    async def respond(question: str, choices: Sequence[str]) -> tuple[str, str]:
        asked.append(question)
        assert choices == ("approve", "deny")
        return said, "ann"

    setting = Setting(
        task="do it",
        model=ModelSpec(model="scripted", base_url="http://127.0.0.1:9/v1"),
        prompt="You are a test agent.",
        tools=Registry([echo()]),
        workspace="/nonexistent",
        limits=Limits(),
    )
    model = ScriptedModel([asks(("echo", {"say": "hi"})), "done"])
    run = LoneRun(setting, model, lambda event, _: seen.append(event), respond)
    body = {**run.spec.policy_body, "approvals": [{"tool": "echo"}]}
    object.__setattr__(run.spec, "policy_body", body)
    await run.drive()
    ended = [e.data for e in seen if e.kind == "call.completed" and e.data.name == "echo"]
    assert [one.status for one in ended] == [status]
    assert "echo hi" in asked[0] and '{"say":"hi"}' in asked[0]
    assert status == "ok" or (said in ended[0].result and "a person (ann) denied" in ended[0].result)
