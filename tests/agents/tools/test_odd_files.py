"""Files as they should not be: without end, in another coding, ambiguous, or gone with their directory."""

import os
import shutil

import pytest

from agents.errors import ToolError
from tests.agents.tools.conftest import Bench


async def test_a_line_as_long_as_the_disk_is_read_in_bounds(bench: Bench) -> None:
    with open(bench.path / "sparse", "wb") as file:
        file.truncate(8 << 30)
    text = (await bench.call("read_file", path="sparse")).text
    assert len(text) < 2**21
    assert text.endswith("[lines 1-1 of 1+; line 1 is longer than shown]")


async def test_a_line_that_is_longer_than_what_is_shown_says_so_and_the_next_can_be_read(bench: Bench) -> None:
    (bench.path / "mini.js").write_text("x" * 3_000_000 + "\nnext\n")
    first = (await bench.call("read_file", path="mini.js")).text
    assert len(first) < 2**21
    assert first.endswith("[lines 1-1 of 2; line 1 is longer than shown; go on with start=2]")
    assert (await bench.call("read_file", path="mini.js", start=2)).text == "next\n[lines 2-2 of 2]"


async def test_a_line_of_many_pieces_is_one_line(bench: Bench) -> None:
    text = "a\n" + "é" * 200_000 + "\nb\n"
    (bench.path / "wide").write_text(text)
    assert (await bench.call("read_file", path="wide", lines=2)).text == text[
        :-2
    ] + "[lines 1-2 of 3; go on with start=3]"


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
async def test_a_line_number_may_be_written_as_a_fraction(bench: Bench, coding: str) -> None:
    (bench.path / "f").write_bytes("a\nb\nc\n".encode(coding))
    assert (await bench.call_raw("read_file", '{"path": "f", "start": 2.0, "lines": 1.0}')).text.startswith(
        "b\n[lines 2-2 of 3"
    )


async def test_a_warning_about_a_pattern_is_no_result(bench: Bench) -> None:
    (bench.path / "f").write_text("[x\n")
    assert (await bench.call("search_files", pattern="[[a]x")).text == "f:1: [x\n[1 match in 1 files]"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
async def test_a_utf_16_file_stays_one_when_it_is_edited(bench: Bench, codec: str) -> None:
    (bench.path / "f").write_bytes("\ufeffone\r\ntwo\r\n".encode(codec))
    await bench.call("edit_file", path="f", old="one\ntwo", new="o\nt\nthree")
    assert (bench.path / "f").read_bytes().decode(codec) == "\ufeffo\r\nt\r\nthree\r\n"


async def test_places_that_overlap_are_more_than_one_place(bench: Bench) -> None:
    (bench.path / "f").write_text("  }\n  }\n  }\n")
    with pytest.raises(ToolError) as caught:
        await bench.call("edit_file", path="f", old="  }\n  }\n", new="  }\n")
    assert (caught.value.kind, "at lines 1, 2" in caught.value.message) == ("not_unique", True)


async def test_a_workspace_that_is_gone_is_not_made_anew(bench: Bench) -> None:
    shutil.rmtree(bench.path)
    with pytest.raises(ToolError) as caught:
        await bench.call("write_file", path="sub/f", content="x")
    assert caught.value.kind == "no_workspace"
    assert not os.path.exists(bench.path)


async def test_a_workspace_that_became_a_file_is_named_as_the_reason(bench: Bench) -> None:
    bench.path.rmdir()
    bench.path.write_text("")
    with pytest.raises(ToolError) as caught:
        await bench.call("run_command", command="true")
    assert "no directory any more" in caught.value.message
