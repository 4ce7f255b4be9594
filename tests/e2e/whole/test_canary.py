"""A key that everybody tries to give away: the provider echoes it, a tool prints it in three forms, a person pastes it.
It is in no outlet of the console: not in the database, the logs, live frames, pages, exports or what can be copied."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.bench.harness import free_port
from tests.e2e.whole.house import House, house
from tests.e2e.whole.scripts import Scripts
from tests.e2e.whole.visits import DESK, sign_in
from tests.scripted_server import Response, ScriptedServer, ask_tools, say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.case("A6-07")]
KEY = "sk-test-CANARY0001"
ECHO = (
    b'{"error":{"message":"Incorrect API key provided: sk-test-CANARY0001. Header: Bearer sk-test-CANARY0001",'
    b'"type":"invalid_request_error","code":"invalid_api_key"}}'
)
FORMS = (KEY, base64.b64encode(KEY.encode()).decode().rstrip("="), KEY.replace("-", "%2D"))
JSON = {"content-type": "application/json"}
EXPORTS = (
    "events?limit=1000", "calls.jsonl", "postmortem.json", "postmortem.md", "postmortem.html", "regression.zip"
)  # fmt: skip


def leaks(content: bytes) -> list[str]:
    return [form for form in FORMS if form.encode() in content]


@pytest_asyncio.fixture(loop_scope="session")
async def own(tmp_path: Path) -> AsyncIterator[tuple[House, Scripts, ScriptedServer]]:
    """A console of its own, whose only key is the canary."""
    port = free_port()
    (tmp_path / "key").write_text(KEY)
    file = tmp_path / "credentials.toml"
    base = f"http://127.0.0.1:{port}/v1"
    file.write_text(f'[[credential]]\nlabel = "canary"\nbase_urls = ["{base}"]\nkey_file = "{tmp_path / "key"}"\n')
    file.chmod(0o600)
    scripts = Scripts(base_url=base)
    more = {"CREDENTIALS_FILE": str(file), "ALLOWED_BASE_URLS": base}
    with house(more=more) as running:
        async with ScriptedServer(scripts.answer, port=port) as server:
            yield running, scripts, server


async def test_a_key_that_is_given_away_comes_out_nowhere(
    own: tuple[House, Scripts, ScriptedServer], browser: Browser, tmp_path: Path
) -> None:
    console, scripts, server = own
    key = tmp_path / "key"
    prints = f"env; cat {key}; echo; base64 {key}; sed 's/-/%2D/g' {key}; echo '{KEY} as an argument'"

    async def answer(given: int, request: Any) -> Response:
        if given == 0:
            return ask_tools(("run_command", {"command": prints}), text=f"My key is {KEY}.")
        if given == 1:
            return ask_tools(("clarify", {"question": f"Is {KEY} right?"}))
        return Response(status=401, headers=JSON, moves=[ECHO]) if "fail" in request["model"] else say(f"It was {KEY}.")

    scripts.play("talker", answer)
    scripts.play("fail", answer)
    state = await sign_in(browser, console, "ann")
    context = await browser.new_context(base_url=console.base, storage_state=state, viewport=DESK)  # type: ignore[arg-type]
    frames: list[bytes] = []

    def heard(payload: str | bytes) -> None:
        frames.append(payload.encode() if isinstance(payload, str) else payload)

    context.on("page", lambda page: page.on("websocket", lambda socket: socket.on("framereceived", heard)))
    found: dict[str, list[str]] = {}
    for model in ("talker", "fail"):
        body = {"agent": "default", "task": f"Talk about {KEY}", "model": model, "base_url": scripts.base_url}
        run = (await console.call("POST", "/api/runs", {**body, "credential": "canary"}))["id"]
        page = await context.new_page()
        await page.goto(f"/runs/{run}/")
        await console.reach(run, "waiting")
        await console.call("POST", f"/api/runs/{run}/steer", {"note": f"use {KEY}"})
        (ask,) = [event for event in await console.events(run) if event["kind"] == "run.waiting"]
        await console.call("POST", f"/api/runs/{run}/answer", {"call": ask["data"]["call"], "text": f"yes, {KEY}"})
        await console.reach(run, "completed", "failed", "waiting")
        await page.wait_for_timeout(1_500)
        found[f"{model} live page"] = leaks((await page.content()).encode())
        calls = [event["call"] for event in await console.events(run) if event["kind"] == "call.completed"]
        assert len(calls) >= 2
        pages = (f"/runs/{run}/", "/", "/inbox/", "/incidents/", "/credentials/", f"/runs/{run}/postmortem",
                 f"/runs/{run}/find?q=sk-", *(f"/runs/{run}/calls/{call}/" for call in calls),
                 *(f"/runs/{run}/calls/{call}/?plain=1" for call in calls))  # fmt: skip
        for path in pages:
            reply = await page.request.get(path)
            found[path] = leaks(await reply.body())
        async with httpx.AsyncClient(base_url=console.base, timeout=30) as client:
            for name in EXPORTS:
                reply = await client.get(
                    f"/api/runs/{run}/{name}", headers={"Authorization": f"Bearer {console.token}"}
                )
                found[f"{model} {name}"] = leaks(reply.content)
    seen = await server.request(0)
    assert seen.headers["authorization"] == f"Bearer {KEY}", "the key was really used"
    assert len(frames) > 4
    found["frames"] = leaks(b"\n".join(frames))
    for path in console.data.rglob("*"):
        if path.is_file():
            found[str(path.relative_to(console.data))] = leaks(path.read_bytes())
    assert {name: forms for name, forms in found.items() if forms} == {}
    await context.close()
