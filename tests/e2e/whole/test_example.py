"""The guided example on a whole console: one button, and within two minutes the night has happened; its postmortem is a
document whose every number follows from the log; and one button takes all of it away."""

import json
import re
import subprocess
import sys
import time
from datetime import datetime
from decimal import Decimal
from typing import Any

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.whole import recount
from tests.e2e.whole.house import House
from tests.e2e.whole.visits import Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
STEPS = ("started", "tripped", "incident", "webhook", "postmortem", "earlier")
LONGEST_S = 120
SECTIONS = (
    "Summary", "Impact", "Timeline", "Trigger", "Detection", "Contributing factors", "Repeated calls",
    "Edits that went back: `rounding.py`", "Cost and input by turn", "What would have stopped it earlier", "Resolution",
    "What went well", "What went badly", "Where we were lucky", "Action items", "Links",
)  # fmt: skip


async def test_one_button_and_the_night_is_told_from_the_trip_to_the_document_and_taken_away(
    visits: Visits, house: House
) -> None:
    page = await visits.open("/example/")
    begun = time.monotonic()
    await page.get_by_role("button", name="Let the night happen").click()
    await page.evaluate("window.sameDocument = true")
    found = re.search(r"/example/([0-9a-f-]{36})/$", page.url)
    assert found is not None
    run = found[1]
    # It cannot be taken away while it happens.
    early = await page.context.new_page()
    await early.goto("/example/")
    await early.get_by_role("button", name="Remove all of it").click()
    await expect(early.get_by_text("A night is still under way.")).to_be_visible()
    for name in STEPS:
        left = max(1.0, LONGEST_S - (time.monotonic() - begun)) * 1000
        await expect(page.locator(f"#step-{name}")).to_have_attribute("data-state", "done", timeout=left)
    assert time.monotonic() - begun < LONGEST_S
    assert await page.evaluate("window.sameDocument"), "everything came without a reload"
    await expect(page.locator("#step-tripped")).to_contain_text("tripped by fuse:max_steps at tool call 25")

    link = page.get_by_role("link", name="The postmortem as Markdown")
    async with page.expect_download() as download:
        await link.click()
    text = (await (await download.value).path()).read_text()
    events = await house.events(run)
    incidents = [one for one in await _incidents(house) if one["run"] == run]
    read_as_a_document(text, incidents)
    numbers_follow_from(text, events)
    await judged_alike(text, run, house)
    await expect(page.locator("#step-earlier")).to_contain_text(
        re.compile(r"ladder v1 first refuses at step \d+ and stops at step \d+")
    )

    await early.goto("/alert-routes/")
    await expect(early.locator(".route-list tr", has_text="drill receiver")).to_contain_text("example")
    (opened,) = [one["object"]["links"]["incident"] for one in await _letters(house)]
    await early.goto("/example/")
    await early.get_by_role("button", name="Remove all of it").click()
    await expect(early.get_by_text("All that the example had made is gone")).to_be_visible()
    await expect(early.locator("#left")).to_have_count(0)
    assert await _letters(house) == [] and [one for one in await _incidents(house) if one["run"] == run] == []
    routes = (await house.call("GET", "/api/alert-routes"))["routes"]
    assert [one for one in routes if "drill receiver" in one["name"]] == []
    async with httpx.AsyncClient(base_url=house.base, headers={"Authorization": f"Bearer {house.token}"}) as client:
        for gone in (f"/api/runs/{run}", f"/api/incidents/{opened.rstrip('/').rpartition('/')[2]}"):
            assert (await client.get(gone)).status_code == 404


async def _incidents(house: House) -> list[dict[str, Any]]:
    return list((await house.call("GET", "/api/incidents?project=the-night"))["incidents"])


async def _letters(house: House) -> list[dict[str, Any]]:
    async with httpx.AsyncClient(timeout=10) as client:
        return [one["body"] for one in (await client.get(f"{house.drill}/drill/alerts")).json()["letters"]]


def read_as_a_document(text: str, incidents: list[dict[str, Any]]) -> None:
    """All sections in their order and none of them empty, tables that are tables, no leftovers of the machine."""
    parts = re.split(r"^## ", text, flags=re.M)
    assert tuple(part.splitlines()[0] for part in parts[1:]) == SECTIONS
    assert parts[0].startswith("# default went in circles on run_command python -m pytest -q\n")
    for part in parts[1:]:
        assert len(part.splitlines()) > 2 and "Nothing noted" not in part, part[:80]
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        rows = block.strip().split("\n")
        assert re.fullmatch(r"(\| --- )+\|", rows[1])
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {len(re.findall(r"(?<!\\)\|", rows[1]))}, rows
    for wrong in (
        r"\b1 (?:calls|times|answers|turns|edits)\b",
        r"\\\d",
        r"\bNone\b(?! agreed)",
        r"={4}|_{4}",
        r"times ways",
    ):
        assert not re.search(wrong, text), wrong
    head = {row[0]: row[1] for row in recount.tables(text)[parts[0].splitlines()[0]]}
    assert (head["Status"], head["Severity"], head["Owner"]) == ("draft", "error", "nobody yet")
    assert all(re.search(rf"\]\(http://\S+/incidents/{one['id']}/\), error, open", parts[-1]) for one in incidents)
    assert len(incidents) >= 1 and "export_test" in text and "- [ ] **prevent** Put default under strict" in text


def numbers_follow_from(text: str, events: list[dict[str, Any]]) -> None:
    steps, spent = recount.steps_of(events), recount.spent_by_turn(events)
    tables = recount.tables(text)
    impact = {row[0]: row[1] for row in tables["Impact"]}
    usd = sum((sums[0] for sums in spent.values()), Decimal(0))
    taken, made = (sum(sums[place] for sums in spent.values()) for place in (1, 2))
    assert impact["Tool calls asked for"] == str(len(steps))
    refused = [step for step in steps if step.status == "blocked"]
    failed = [step for step in steps if step.status == "error"]
    assert impact["… of these run"] == f"{len(steps) - len(refused)}, of which {len(failed)} failed"
    assert impact["… of these refused"] == str(len(refused)) == "1"
    chats = [e for e in events if e["kind"] == "call.completed" and e["data"]["operation"] == "chat"]
    assert impact["Model calls"] == impact["Turns"] == str(len(chats))
    assert impact["Edits"] == str(sum(len(step.wrote) for step in steps))
    assert impact["Spent"] == f"${usd:.4f}"
    assert impact["Input tokens"] == f"{taken:,} (0 cached)" and impact["Output tokens"] == f"{made:,}"

    # Each call's part of its turn is what it has cost.
    idle = recount.taught_nothing(steps)
    wasted = sum((spent[step.turn][0] / sum(one.turn == step.turn for one in steps) for step in idle), Decimal(0))
    assert impact["Calls that taught nothing"] == str(len(idle))
    assert impact["Wasted"].startswith(f"${wasted:.4f}, ")
    pytests = [step for step in steps if step.what[0] == "run_command"]
    row = next(row for row in tables["Repeated calls"] if row[0].startswith("run_command"))
    answers = {step.answer for step in pytests if step.status != "blocked"}
    assert row[1:4] == [str(len(pytests)), str(len(answers)), str(sum(step in idle for step in pytests))]

    gap_s, since = recount.longest_gap(events)
    assert impact["Longest silence"].startswith(f"{recount.said(gap_s)} from {since:%H:%M:%S}, ")
    start, end = (next(e for e in events if e["kind"] == kind) for kind in ("run.started", "run.tripped"))
    lasted = (recount.at(end) - recount.at(start)).total_seconds()
    assert impact["Duration"] == recount.said(lasted)

    verdicts = [event for event in events if event["kind"] == "verdict.issued"]
    delays = {row[0]: row[1] for row in tables["Detection"]}
    detect = (recount.at(verdicts[0]) - idle[0].asked).total_seconds()
    assert delays["Time to detect"] == recount.said(detect) and delays["Time to acknowledge"] == "never"
    last = [event for event in verdicts if event["data"]["rung"] == "stop"][-1]
    assert delays["Time to stop"] == recount.said((recount.at(end) - recount.at(last)).total_seconds())

    turns = {row[0]: row[1:] for row in tables["Cost and input by turn"][1:]}
    for turn, shown in turns.items():
        so_far = sum((sums[0] for at, sums in spent.items() if at <= int(turn)), Decimal(0))
        sums = spent[int(turn)]
        assert [shown[0], shown[1], shown[3]] == [f"{sums[1]:,}", f"{sums[2]:,}", f"${so_far:.4f}"]
    earlier_follows_from(tables, steps, spent)
    timeline_follows_from(tables["Timeline"][1:], events)


def earlier_follows_from(tables: dict[str, list[list[str]]], steps: list[recount.Step], spent: dict[int, Any]) -> None:
    rows = {row[0].split()[0]: row for row in tables["What would have stopped it earlier"]}
    strict = recount.strict_stops(steps, {turn: sums[1] + sums[2] for turn, sums in spent.items()})
    refused, ladder = recount.ladder_says(steps)
    # Other rules of `default` may speak first; what is written and undone again and again stops at the latest here.
    shown = re.search(r"(?:^|stopped at )step (\d+)", rows["default"][1])
    assert shown is not None
    default = int(shown[1])
    assert default <= recount.oscillation_stops(steps)
    for name, stop in (("strict", strict), ("ladder", ladder), ("default", default)):
        step = steps[stop - 1]
        # The answer that asked for the call was paid for; what came later was not.
        saved = sum((sums[0] for turn, sums in spent.items() if turn > step.turn), Decimal(0))
        assert f"step {stop} · {step.asked:%H:%M:%S}" in rows[name][1], name
        assert rows[name][2] == f"${saved:.4f}"
    assert rows["ladder"][1].startswith(f"first refused at step {refused}, stopped at step {ladder} ")
    assert rows["strict"][1].startswith("step ")


async def judged_alike(text: str, run: str, house: House) -> None:
    """What `python -m agents judge` says of the exported calls: the same first refusals and stops."""
    async with httpx.AsyncClient(base_url=house.base, headers={"Authorization": f"Bearer {house.token}"}) as client:
        calls = (await client.get(f"/api/runs/{run}/calls.jsonl")).content
    asked = json.loads(calls)["calls"]
    rows = {row[0].split()[0]: row[1] for row in recount.tables(text)["What would have stopped it earlier"]}
    for policy in ("default", "strict", "ladder"):
        command = [sys.executable, "-m", "agents", "judge", "--policy", policy]
        done = subprocess.run(command, input=calls, capture_output=True, check=True, timeout=60)
        verdicts = json.loads(done.stdout)["verdicts"]

        def step(verdict: dict[str, Any]) -> int:
            return sum(not one["tool"].startswith("__") for one in asked[: verdict["call"]])

        stop = next(step(one) for one in verdicts if one["rung"] == "stop")
        refused = next((step(one) for one in verdicts if one.get("mode") == "refuse"), stop)
        first = f"first refused at step {refused}, stopped at " if refused < stop else ""
        assert rows[policy].startswith(f"{first}step {stop} "), (policy, rows[policy])


def timeline_follows_from(rows: list[list[str]], events: list[dict[str, Any]]) -> None:
    """Every line of the log's own is at its event's second, in order; verdicts, trip and alerts are there."""
    by_seq = {event["seq"]: event for event in events}
    for clock, _, text, seq in rows:
        if seq:
            assert clock == f"{datetime.fromisoformat(by_seq[int(seq[1:])]['at']):%H:%M:%S}", text
    kinds = [row[1] for row in rows]
    assert kinds.count("alert") >= 2 and kinds.count("verdict") == 2
    assert rows == sorted(rows, key=lambda row: row[0])
    told = " ".join(row[2] for row in rows)
    assert "tripped by fuse max_steps at step 25" in told and "incident opened (error)" in told
    assert "webhook trigger sent · 204" in told


async def test_a_viewer_sees_the_nights_and_no_button(visits: Visits) -> None:
    page = await visits.open("/example/", who="vic")
    await expect(page.get_by_text("You may look.")).to_be_visible()
    await expect(page.get_by_role("button", name="Let the night happen")).to_have_count(0)
