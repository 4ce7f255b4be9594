"""What the page shows is what the log says: after a reload in mid-stream and after twenty dropped sockets."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import expect

from tests.e2e.whole.house import House
from tests.e2e.whole.run_page import drawn, grows, is_live, is_now, stream
from tests.e2e.whole.scripts import Scripts
from tests.e2e.whole.visits import Visits
from tests.scripted_server import Response, ask_tools, say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
DROPS = 20
# Keeps every socket that the page opens, so that a test can cut the line under it.
SOCKETS = """
  window.lines = [];
  window.WebSocket = class extends WebSocket {
    constructor(...words) { super(...words); window.lines.push(this); }
  };
"""


async def test_reload_in_mid_stream_loses_and_doubles_nothing(visits: Visits, house: House) -> None:
    run = await house.start("slow", "Read me the log. tokens=600 pace_ms=20")
    page = await visits.open(f"/runs/{run}/")
    length = await grows(stream(page), 60)
    await page.reload()
    await grows(stream(page), length)
    await page.reload()
    await is_now(page, "Completed")
    (answer,) = [event for event in await house.events(run) if event["kind"] == "call.completed"]
    assert len(answer["data"]["text"].split()) == 600
    await expect(page.locator(f"#text-{answer['call']}")).to_have_text(answer["data"]["text"])
    await expect(page.locator("#turns .turn")).to_have_count(1)
    await expect(page.locator("#turns .turn .say")).to_have_count(1)
    await expect(page.locator("[data-final=completed] .say")).to_have_text(answer["data"]["text"])


@pytest.mark.case("A6-02")
async def test_twenty_dropped_sockets_show_every_event_once_and_in_order(
    visits: Visits, house: House, scripts: Scripts
) -> None:
    gates = [asyncio.Event() for _ in range(DROPS + 1)]

    async def answer(given: int, request: Any) -> Response:
        await gates[given].wait()
        if given == DROPS:
            return say("All watches are over.")
        return ask_tools(("run_command", {"command": f"echo watch {given + 1}"}), text=f"Watch {given + 1}.")

    scripts.play("watches", answer)
    run = await house.start("watches", "Keep twenty watches.", base_url=scripts.base_url)
    page = await visits.open("/")
    await page.context.add_init_script(SOCKETS)
    await page.goto(f"/runs/{run}/")
    for turn, gate in enumerate(gates[:DROPS], start=1):
        await is_live(page)
        await page.evaluate("window.lines.at(-1).close()")
        gate.set()
        # The next model call waits at its gate; all that came before it was said while the line was cut.
        await expect(page.locator(f"#turn-{turn + 1} .chat[data-state=running]")).to_have_count(1)
        await expect(page.locator(f"#turn-{turn} .call[data-state=ok]")).to_have_count(1)
    gates[DROPS].set()
    await is_now(page, "Completed")
    # The side follows the row, the middle follows the log: either may be the first to say so.
    await expect(page.locator("[data-final=completed]")).to_have_count(1)
    assert await page.evaluate("window.lines.length") >= DROPS

    live = await drawn(page)
    ids = [id for id, _, _ in live]
    assert len(ids) == len(set(ids))
    events = await house.events(run)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    calls = [event["call"] for event in events if event["kind"] == "call.completed"]
    assert [id for id in ids if id.startswith("call-")] == [f"call-{call}" for call in calls]
    assert [id for id in ids if id in {f"turn-{n}" for n in range(99)}] == [f"turn-{n}" for n in range(1, DROPS + 2)]
    seqs = [int(seq) for _, seq, _ in live if seq]
    assert seqs == sorted(seqs)
    await page.reload()
    await is_live(page)
    assert await drawn(page) == live
