"""More of the night for the pictures: what comes after it (an incident, a backtest, a replay, a schedule, the guided
example), and an answer and a tool's output with some form."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image
from playwright.async_api import Page, expect

from tests.e2e.whole.house import House, until
from tests.e2e.whole.run_page import is_live
from tests.e2e.whole.scripts import Scripts
from tests.scripted_server import Response, ask_tools, say

Picture = Callable[[Page], Awaitable[None]]
Start = Callable[..., Awaitable[str]]
_PYTEST = (
    r"printf '\033[1mtests/test_basket.py\033[0m \033[32m..\033[0m\033[31mF\033[0m\n\n"
    r"\033[31mE   assert 4.02 == 4.01\033[0m\n\033[36mbasket/total.py\033[0m:14: AssertionError\n"
    r"\033[31m\033[1m1 failed\033[0m, \033[32m2 passed\033[0m in 0.11s\n'"
)
_ANSWER = """## Found: `total()` rounds twice

Each **line** is rounded before the sum is, so a cent goes missing as soon as three lines meet:

| lines | before | now |
|---|---|---|
| 2 | 2.68 | 2.68 |
| 3 | 4.02 | **4.01** |

1. `total()` adds first and rounds once
2. the tests hold both cases

```diff
-    return sum(round(line, 2) for line in lines)
+    return round(sum(lines), 2)
```

More in [the issue](https://issues.example/7). ![chart](https://charts.example/c.png)
"""


@dataclass(slots=True, kw_only=True)
class After:
    """What the further pictures show, by its id."""

    formed: str
    replay: str
    backtest: str
    example: str
    incident: str


def shrunk(png: bytes) -> bytes:
    """The same picture as lossless WebP, in half of the bytes. A palette would be smaller still, but small things, like
    the dot of a state, would take the colour of their neighbours."""
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(out, "WEBP", lossless=True, quality=100, method=4)
    return out.getvalue()


async def _formed(given: int, request: Any) -> Response:
    used = {"prompt_tokens": 2210 + 300 * given, "completion_tokens": 160, "cost": 0.0031}
    if given == 0:
        return ask_tools(("run_command", {"command": _PYTEST}), text="I run the tests.", used=used)
    return say(_ANSWER, used=used)


async def play_on(house: House, page: Page, start: Start, scripts: Scripts, tripped: str) -> After:
    """What people do the morning after; `page` and `start` are an operator's."""
    scripts.play("mender", _formed)
    why = "Why is a cent missing in some baskets?"
    formed = await start("on-call-helper", "mender", why, base_url=scripts.base_url, labels={"team": "shop"})
    schedule = {"agent": "nightly-fixer", "task": "Mend what the day has broken", "cron": "30 1 * * 1-5"}
    await house.call("PUT", "/api/schedules/nightly", {**schedule, "zone": "Europe/Berlin"})
    asked = {"policies": ["nightly", "strict"], "filter": {}}
    backtest = str((await house.call("POST", "/api/backtests", asked))["id"])
    replay = str((await house.call("POST", f"/api/runs/{tripped}/replay", {"policy": "strict"}))["id"])
    await page.goto("/example/")
    await page.get_by_role("button", name="Let the night happen").click()
    await expect(page.locator("#step-earlier")).to_have_attribute("data-state", "done", timeout=180_000)
    example = page.url.rstrip("/").rpartition("/")[2]
    await house.reach(formed, "completed")
    await house.reach(replay, "completed", "tripped", "failed", "exhausted")

    async def over() -> bool:
        return bool((await house.call("GET", f"/api/backtests/{backtest}"))["state"] == "done")

    await until(over, "the backtest is done")
    incidents = (await house.call("GET", "/api/incidents"))["incidents"]
    incident = next(str(one["id"]) for one in incidents if one["run"] == tripped)
    await asyncio.sleep(1)
    return After(formed=formed, replay=replay, backtest=backtest, example=example, incident=incident)


def pictures_after(after: After, opened: Callable[[str], Picture]) -> dict[str, Picture]:
    async def laid_out(page: Page) -> None:
        await page.goto(f"/runs/{after.formed}/")
        await is_live(page)
        await page.locator("#turns details").first.evaluate("node => (node.open = true)")
        if await page.get_by_role("button", name="Lay out").count():
            await page.locator("button[value=laid]:visible").first.click()
        await page.locator(".turn .call").first.scroll_into_view_if_needed()

    return {
        "run-laid-out": laid_out,
        "incident": opened(f"/incidents/{after.incident}/"),
        "replay": opened(f"/runs/{after.replay}/replay"),
        "backtest-result": opened(f"/policies/-/backtest/{after.backtest}/"),
        "example-run": opened(f"/example/{after.example}/"),
        "example-postmortem": opened(f"/runs/{after.example}/postmortem"),
        "schedule": opened("/schedules/nightly/"),
        "fleet-sorted": opened("/?sort=-cost"),
    }
