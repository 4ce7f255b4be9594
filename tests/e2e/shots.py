"""Pictures of the console: `python -m tests.e2e.shots OUTDIR` plays a night on a whole console and photographs it.

`<page>-<dark|light>-<1440|390>.webp` for the fleet, a live run, one that tripped, the interrupt dialog, the start form,
the pages of the other rooms, what comes after the night, and the sign-in. What is there already is not taken anew.
`docs/screenshots/` is made by it.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.bench.stack import marked
from tests.e2e.shots_index import file_of
from tests.e2e.shots_index import page as index
from tests.e2e.shots_more import Picture, Start, pictures_after, play_on, shrunk
from tests.e2e.whole.house import House, house, until
from tests.e2e.whole.run_page import grows, interrupt, is_live, is_now, stream
from tests.e2e.whole.scripts import Scripts
from tests.e2e.whole.visits import ARGUMENTS, DESK, PHONE, sign_in
from tests.pieces import chromium
from tests.scripted_server import Response, ScriptedServer, ask_tools, say, status

SIZES: dict[str, dict[str, Any]] = {"1440": {"viewport": DESK}, "390": PHONE}
THEMES = ("dark", "light")
TOOLS = ["list_files", "read_file", "search_files", "write_file", "edit_file", "run_command", "clarify", "delegate"]
AGENTS = ("nightly-fixer", "importer", "release-notes", "on-call-helper")


_FIRST = """# The nightly fixers: generous with reads, and nobody pushes unseen.
note = "Nightly repairs: few steps, pushes only with consent."
approvals = [{ tool = "run_command", when = { command = "git push*" }, why = "Pushing is for people." }]

[fuses]
max_steps = 60
max_working_seconds = 5400
max_identical_calls = 12
max_failures_in_a_row = 8

[rules]
repeat_error = { observe = 1, block = 2, stop = 5 }
repeat_read = { observe = 2, block = 6, stop = 10, mode = "stub" }
pending = { observe = 3, steer = 5, block = 8, stop = 30, mode = "stub" }
failures_in_a_row = { observe = 6, stop = 16, shadow = true }

[identity]
read_page = ["url"]
heartbeat = false
"""
# The text of each version and why it was saved.
POLICY = (
    (_FIRST, "For the nightly fixers"),
    (_FIRST.replace("= 60", "= 40").replace("block = 6", "block = 3"), "The night of the 3rd: 29 test runs"),
)


@dataclass(slots=True, kw_only=True)
class Night:
    """The runs that the pictures show, by what they are."""

    asking: str
    tripped: str
    family: str


class Teller:
    """Starts runs as ann does, from a session of her own."""

    def __init__(self, house: House, page: Page) -> None:
        self._house = house
        self._page = page
        self._refused = False

    async def _own(self) -> dict[str, str]:
        cookies = {cookie["name"]: cookie["value"] for cookie in await self._page.context.cookies()}
        return {"X-CSRFToken": cookies["csrftoken"], "Referer": f"{self._house.base}/"}

    async def start(self, agent: str, model: str, task: str, **more: Any) -> str:
        body = {"agent": agent, "task": task, "model": model, "base_url": f"{self._house.drill}/v1", **more}
        answer = await self._page.request.post("/api/runs", data=body, headers=await self._own())
        assert answer.ok, await answer.text()
        return str((await answer.json())["id"])

    async def note(self, run: str, text: str) -> None:
        answer = await self._page.request.post(f"/api/runs/{run}/steer", data={"note": text}, headers=await self._own())
        assert answer.ok, await answer.text()

    async def stop(self, run: str, reason: str) -> None:
        await self._page.goto(f"/runs/{run}/")
        await is_live(self._page)
        await interrupt(self._page, reason)
        await is_now(self._page, "Interrupted")

    async def limited(self, given: int, request: Any) -> Response:
        """A model whose provider is short of breath once."""
        if given == 1 and not self._refused:
            self._refused = True
            return status(429, retry_after=1)
        if given < 2:
            names = ("alpha", "beta") if given else ("notes",)
            return ask_tools(
                *(("write_file", {"path": f"{name}.md", "content": f"# {name}\n"}) for name in names),
                text="I collect what was merged since the last tag.",
                used={"prompt_tokens": 2840 + 400 * given, "completion_tokens": 190, "cost": 0.0041},
            )
        used = {"prompt_tokens": 3710, "completion_tokens": 64, "cost": 0.0052}
        return say("The notes are written: 3 files, 14 entries.", used=used)


async def play(house: House, teller: Teller, scripts: Scripts) -> Night:
    """A night with an end of every kind, and some that still go on."""
    for text, why in POLICY:
        await house.call("PUT", "/api/policies/nightly", {"toml": text, "reason": why})
    for name in AGENTS:
        prompt = f"You are {name}. Do what the task says and nothing else."
        policy = "nightly" if name == "nightly-fixer" else "default"
        await house.call("PUT", f"/api/agents/{name}", {"prompt": prompt, "tools": TOOLS, "policy": policy})
    scripts.play("release-writer", teller.limited)
    start = teller.start
    batch = await start("importer", "batch", "Reindex the product catalogue in eight shards", labels={"team": "search"})
    notes = await start("release-notes", "release-writer", "Write release notes for 4.18", base_url=scripts.base_url)
    mended = await start("nightly-fixer", "tour", "Get the basket project's tests green", labels={"team": "shop"})
    await answer(house, mended)
    naps = await start("on-call-helper", "family", "Compare both order replicas. seconds=90")
    tired = await start("nightly-fixer", "runaway", "Find the port of staging", policy="off", limits={"max_turns": 8})
    runaway = await start("nightly-fixer", "runaway", "Fix flaky test_config_loader", limits={"max_steps": 12})
    failed = await start("importer", "importer-1", "Import yesterday's invoices", base_url="http://127.0.0.1:9/v1")
    await busy(house, naps)
    await teller.stop(naps, "replica 2 is being restored")
    for run, ends in ((runaway, "tripped"), (tired, "exhausted"), (batch, "completed"), (notes, "completed")):
        await house.reach(run, ends)
    await house.reach(failed, "failed")
    family = await start("on-call-helper", "family", "Drain both payment queues. seconds=600")
    await start("on-call-helper", "slow", "Read me the log of the night watch, slowly")
    await busy(house, family)
    asking = await start("nightly-fixer", "tour", "Mend total() in the basket project", labels={"team": "shop"})
    await until(lambda: takes(house, asking, 4), "the tour is under way")
    await teller.note(asking, "Leave the public signature of total() as it is.")
    await house.reach(asking, "waiting")
    await teller.note(asking, "Name the changed line in your summary.")
    return Night(asking=asking, tripped=runaway, family=family)


async def takes(house: House, run: str, turn: int) -> bool:
    return bool((await house.run(run))["turns"] >= turn)


async def answer(house: House, run: str) -> None:
    await house.reach(run, "waiting")
    (ask,) = [event for event in await house.events(run) if event["kind"] == "run.waiting"]
    await house.call("POST", f"/api/runs/{run}/answer", {"call": ask["data"]["call"], "text": "Add a README"})
    await house.reach(run, "completed")


async def busy(house: House, run: str) -> None:
    """Wait until both sub-agents of a run keep processes going."""

    async def napping() -> bool:
        started = [event["data"]["run"] for event in await house.events(run) if event["kind"] == "child.started"]
        return len(started) == 2 and all([await asyncio.to_thread(marked, child) for child in started])

    await until(napping, "both sub-agents work")


def opened(path: str) -> Picture:
    """A page that is what it is as soon as it is there."""

    async def arrange(page: Page) -> None:
        await page.goto(path)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()

    return arrange


def pictures(night: Night, start: Start) -> dict[str, Picture]:
    async def fleet(page: Page) -> None:
        await page.goto("/")
        await is_live(page)

    async def run(page: Page) -> None:
        await page.goto(f"/runs/{night.asking}/")
        await is_live(page)
        await expect(page.locator(".ask")).to_be_visible()

    async def tripped(page: Page) -> None:
        await page.goto(f"/runs/{night.tripped}/")
        await is_live(page)
        await expect(page.locator('[data-final="tripped"]')).to_be_visible()

    async def streaming(page: Page) -> None:
        # It writes for a minute, and the one before may have ended.
        slow = await start("on-call-helper", "slow", "Read me the log of the night watch, slowly")
        await page.goto(f"/runs/{slow}/")
        await is_live(page)
        await grows(stream(page), 200)

    async def dialog(page: Page) -> None:
        await page.goto(f"/runs/{night.family}/")
        await is_live(page)
        if page.viewport_size == DESK:
            await page.keyboard.press("i")
        else:
            await page.locator(".thumb .danger").tap()
        await page.get_by_label("Reason").fill("queue 2 is drained by hand")

    async def form(page: Page) -> None:
        await page.goto("/runs/new/")
        await page.get_by_label("Task").fill("Fix flaky test_invoice_total\n\nIt fails about once in ten runs.")
        await page.get_by_label("Model", exact=True).fill("tour")

    async def door(page: Page) -> None:
        await page.context.clear_cookies(name="sessionid")
        await page.goto("/sign-in/")

    return {
        "fleet": fleet,
        "run": run,
        "tripped": tripped,
        "postmortem": opened(f"/runs/{night.tripped}/postmortem"),
        "stream": streaming,
        "interrupt": dialog,
        "start": form,
        "sign-in": door,
    }


# What an admin sees.
ROOMS = {
    "inbox": opened("/inbox/"),
    "agents": opened("/agents/"),
    "agent": opened("/agents/nightly-fixer/"),
    "agent-versions": opened("/agents/nightly-fixer/versions/"),
    "agent-edit": opened("/agents/nightly-fixer/edit/"),
    "agent-compare": opened("/agents/-/compare/?a=default&b=nightly-fixer"),
    "workers": opened("/workers/"),
    "credentials": opened("/credentials/"),
    "audit": opened("/audit/"),
    "account": opened("/account/"),
    "styleguide": opened("/styleguide"),
    "policies": opened("/policies/"),
    "policy": opened("/policies/nightly/"),
    "policy-default": opened("/policies/default/"),
    "policy-versions": opened("/policies/nightly/versions/"),
    "policy-edit": opened("/policies/nightly/edit/?from=nightly@1"),
    "policy-compare": opened("/policies/-/compare/?a=strict&b=nightly"),
    "backtest": opened("/policies/-/backtest/"),
    "suggest": opened("/policies/-/suggest/"),
    "incidents": opened("/incidents/"),
    "incident-rules": opened("/incidents/rules/"),
    "alert-routes": opened("/alert-routes/"),
    "alert-route-new": opened("/alert-routes/new/"),
    "schedules": opened("/schedules/"),
    "schedule-new": opened("/schedules/-/new/"),
    "example": opened("/example/"),
}


async def photograph(context: BrowserContext, wanted: dict[str, Picture], folder: Path, look: tuple[str, str]) -> None:
    page = await context.new_page()
    for name, arrange in wanted.items():
        if (folder / file_of(name, *look)).exists():
            continue
        await arrange(page)
        picture = await page.screenshot(animations="disabled", caret="initial")
        (folder / file_of(name, *look)).write_bytes(shrunk(picture))


async def take(house: House, browser: Browser, scripts: Scripts, folder: Path) -> None:
    ann, ada = await sign_in(browser, house, "ann"), await sign_in(browser, house, "ada")
    context = await browser.new_context(base_url=house.base, storage_state=ann)
    page = await context.new_page()
    teller = Teller(house, page)
    night = await play(house, teller, scripts)
    after = await play_on(house, page, teller.start, scripts, night.tripped)
    rooms = ROOMS | pictures_after(after, opened)
    for theme in THEMES:
        for size, profile in SIZES.items():
            for who, wanted in ((ann, pictures(night, teller.start)), (ada, rooms)):
                shown = await browser.new_context(base_url=house.base, storage_state=who, **profile)
                await shown.add_cookies([{"name": "theme", "value": theme, "url": house.base}])
                await photograph(shown, wanted, folder, (theme, size))
                await shown.close()


async def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=30_000)
    scripts = Scripts()
    with house() as running:
        async with ScriptedServer(scripts.answer, port=running.scripted_port) as server, async_playwright() as driver:
            scripts.base_url = server.base_url
            browser = await driver.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
            await take(running, browser, scripts, folder)
            await browser.close()
    names = {path.name.rsplit("-", 2)[0] for path in folder.glob("*.webp")}
    folder.with_suffix(".md").write_text(index(names, folder.name), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(str(__doc__))
    os.environ.setdefault("TZ", "UTC")
    asyncio.run(main(Path(sys.argv[1])))
