"""Searches: what they find, what they leave out, and that none runs for ever."""

import asyncio
import time

import pytest

from agents.errors import ToolError
from agents.tools import search
from tests.agents.tools.conftest import Bench, carriers


async def test_matches_come_with_path_and_line(bench: Bench) -> None:
    (bench.path / "src").mkdir()
    (bench.path / "src" / "a.py").write_text("import os\ndef main():\n    pass\n")
    (bench.path / "b.txt").write_text("def nothing\n")
    output = await bench.call("search_files", pattern=r"def \w+\(")
    assert output.text == "src/a.py:2: def main():\n[1 match in 2 files]"
    assert (await bench.call("search_files", pattern="(?i)DEF", path="b.txt")).text.startswith("b.txt:1: def nothing")


async def test_no_match_is_no_error_and_says_what_was_left_out(bench: Bench) -> None:
    (bench.path / "x.bin").write_bytes(b"\x00\x01def")
    (bench.path / "node_modules").mkdir()
    output = await bench.call("search_files", pattern="def")
    assert output.text == "[no matches in 0 files; not searched: 1 binary files, node_modules/]"
    assert not output.is_error


async def test_links_are_not_followed_out_or_around(bench: Bench) -> None:
    (bench.path / "etc").symlink_to("/etc")
    (bench.path / "self").symlink_to(".")
    assert "no matches in 0 files" in (await bench.call("search_files", pattern="root")).text
    with pytest.raises(ToolError, match="outside"):
        await bench.call("search_files", pattern="root", path="etc")


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "x\x00y", "\ud800"])
async def test_a_bad_pattern_is_told(bench: Bench, pattern: str) -> None:
    with pytest.raises(ToolError) as caught:
        await bench.call("search_files", pattern=pattern)
    assert caught.value.kind == "bad_pattern"


async def test_many_matches_are_cut_and_long_lines_shown_around_the_match(bench: Bench) -> None:
    (bench.path / "m.txt").write_text("hit\n" * 500)
    assert "more than 200 matches" in (await bench.call("search_files", pattern="hit")).text
    (bench.path / "m.txt").write_text("x" * 100_000 + "needle" + "y" * 100_000)
    text = (await bench.call("search_files", pattern="needle")).text
    assert "needle" in text
    assert len(text) < 500


@pytest.mark.case("A2-06")
async def test_a_pattern_that_never_ends_blocks_nobody_and_is_ended(
    bench: Bench, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_TIMEOUT_S", 0.5)
    (bench.path / "a.txt").write_text("b\n" + "a" * 60 + "!\n")
    began, beats = time.monotonic(), 0
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    task = asyncio.create_task(bench.call("search_files", context, pattern="(a+)+$|b"))
    while not task.done():
        await asyncio.sleep(0.01)
        beats += 1
    output = await task
    assert output.status == "timeout"
    assert output.text.startswith("a.txt:1: b\n")
    assert time.monotonic() - began < 4
    assert beats > 20
    assert carriers(mark) == []
