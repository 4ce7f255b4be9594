"""Files: read, listed, written and edited, inside the workspace and nowhere else."""

import asyncio
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agents.errors import ToolError
from agents.policy.redaction import make_safe
from agents.tools.places import folds_case
from tests.agents.tools.conftest import Bench

ROOT = str(Path(__file__).resolve().parents[3])


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_system_that_tells_cases_apart_is_known_as_such(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "Twin").mkdir()
    if not (tmp_path / "twin").exists():
        assert not folds_case(str(tmp_path / "Twin"))
    else:
        assert folds_case(str(tmp_path / "Twin"))


async def test_a_file_comes_as_it_is(bench: Bench) -> None:
    (bench.path / "a.txt").write_text("one\n\ttwo\r\nthree")
    assert (await bench.call("read_file", path="a.txt")).text == "one\n\ttwo\r\nthree"


async def test_a_long_file_comes_in_parts_that_say_how_to_go_on(bench: Bench) -> None:
    (bench.path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 5001)))
    first = (await bench.call("read_file", path="a.txt")).text
    assert first.startswith("line 1\n")
    assert first.endswith("[lines 1-2000 of 5000; go on with start=2001]")
    assert (
        await bench.call("read_file", path="a.txt", start=4999)
    ).text == "line 4999\nline 5000\n[lines 4999-5000 of 5000]"
    part = (await bench.call("read_file", path="a.txt", start=10, lines=2)).text
    assert part == "line 10\nline 11\n[lines 10-11 of 5000; go on with start=12]"
    with pytest.raises(ToolError, match="only 5000 lines"):
        await bench.call("read_file", path="a.txt", start=6000)


@pytest.mark.case("A2-01")
async def test_text_with_nul_or_in_utf16_can_be_read(bench: Bench) -> None:
    (bench.path / "nul.txt").write_bytes(b"W\x00s\x00l\x00\n")
    (bench.path / "wide.txt").write_bytes("größer\n".encode("utf-16"))
    assert make_safe((await bench.call("read_file", path="nul.txt")).text).text == "W␀s␀l␀\n"
    assert (await bench.call("read_file", path="wide.txt")).text == "größer\n"


async def test_what_is_no_text_says_how_to_look_at_it(bench: Bench) -> None:
    (bench.path / "b.bin").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(ToolError, match="binary"):
        await bench.call("read_file", path="b.bin")


async def test_a_missing_file_is_told_with_its_neighbours(bench: Bench) -> None:
    (bench.path / "settings.toml").write_text("")
    with pytest.raises(ToolError, match=r"Similar names there: settings\.toml"):
        await bench.call("read_file", path="Settings.yaml")


async def test_a_pipe_does_not_make_the_reader_wait(bench: Bench) -> None:
    os.mkfifo(bench.path / "pipe")
    with pytest.raises(ToolError, match="no regular file"):
        await bench.call("read_file", path="pipe")


async def test_a_listing_shows_directories_sizes_and_links(bench: Bench) -> None:
    (bench.path / "d").mkdir()
    (bench.path / "f").write_text("abc")
    (bench.path / "l").symlink_to("f")
    assert (await bench.call("list_files")).text == "d/\nf (3 bytes)\nl -> f"
    assert (await bench.call("list_files", path="d")).text == "d is empty."


@pytest.mark.parametrize(
    "path", ["../out.txt", "/etc/passwd", "away/passwd", "d/../../out.txt", "away", "loop", "n\x00l"]
)
async def test_nothing_outside_the_workspace_is_read_or_written(bench: Bench, tmp_path: Path, path: str) -> None:
    (tmp_path / "out.txt").write_text("outside")
    (bench.path / "d").mkdir()
    (bench.path / "away").symlink_to("/etc")
    (bench.path / "loop").symlink_to("loop")
    with pytest.raises(ToolError):
        await bench.call("read_file", path=path)
    with pytest.raises(ToolError):
        await bench.call("write_file", path=path, content="x")
    assert (tmp_path / "out.txt").read_text() == "outside"


async def test_a_link_to_a_new_file_outside_is_refused_too(bench: Bench, tmp_path: Path) -> None:
    (bench.path / "new").symlink_to(tmp_path / "not-yet")
    with pytest.raises(ToolError, match="outside"):
        await bench.call("write_file", path="new", content="x")
    assert not (tmp_path / "not-yet").exists()


async def test_an_absolute_path_inside_is_as_good_as_a_relative_one(bench: Bench) -> None:
    output = await bench.call("write_file", path=str(bench.path / "a" / "b.txt"), content="x")
    assert output.edits[0].path == "a/b.txt"


async def test_what_belongs_to_git_is_not_written(bench: Bench) -> None:
    for path in (".git/config", "sub/.GIT/hooks/pre-commit"):
        with pytest.raises(ToolError, match="belongs to git"):
            await bench.call("write_file", path=path, content="x")


async def test_a_write_records_what_was_and_what_is(bench: Bench) -> None:
    made = (await bench.call("write_file", path="d/a.txt", content="one\n")).edits[0]
    assert (made.path, made.before_sha256, made.sha256, made.size) == ("d/a.txt", None, sha(b"one\n"), 4)
    assert made.state == sha(b"one\n")[:8]
    again = await bench.call("write_file", path="d/a.txt", content="two\n")
    assert again.text.startswith("Replaced d/a.txt")
    assert again.edits[0].before_sha256 == sha(b"one\n")
    same = await bench.call("write_file", path="d/a.txt", content="two\n")
    assert "nothing changed" in same.text
    assert same.edits[0].before_sha256 == same.edits[0].sha256


async def test_mode_bits_survive_and_no_temporary_file_is_left(bench: Bench) -> None:
    script = bench.path / "run.sh"
    script.write_text("echo a")
    script.chmod(0o750)
    await bench.call("edit_file", path="run.sh", old="a", new="b")
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert os.listdir(bench.path) == ["run.sh"]


async def test_an_edit_that_fits_nowhere_or_twice_says_where(bench: Bench) -> None:
    (bench.path / "a.py").write_text("x = 1\ny = 2\n    x = 1\n")
    with pytest.raises(ToolError, match=r"occurs 2 times in 'a\.py', at lines 1, 3"):
        await bench.call("edit_file", path="a.py", old="x = 1", new="x = 9")
    with pytest.raises(ToolError, match="At line 1 stands the same text with other blanks"):
        await bench.call("edit_file", path="a.py", old="  x = 1\n  y = 2", new="")
    with pytest.raises(ToolError, match="Its first line stands at line 2, but what follows differs"):
        await bench.call("edit_file", path="a.py", old="y = 2\nz = 3", new="")
    assert (bench.path / "a.py").read_text() == "x = 1\ny = 2\n    x = 1\n"
    output = await bench.call("edit_file", path="a.py", old="x = 1", new="x = 9", all=True)
    assert "2 places" in output.text
    assert (bench.path / "a.py").read_text() == "x = 9\ny = 2\n    x = 9\n"


async def test_an_edit_keeps_foreign_bytes_and_line_ends(bench: Bench) -> None:
    (bench.path / "w.txt").write_bytes(b"\xff\r\none\r\ntwo\r\n")
    await bench.call("edit_file", path="w.txt", old="one\ntwo", new="1\n2\n3")
    assert (bench.path / "w.txt").read_bytes() == b"\xff\r\n1\r\n2\r\n3\r\n"


@pytest.mark.case("A2-02")
@pytest.mark.parametrize("content", ["half \ud83d", "\ude00"])
async def test_half_a_character_is_refused_not_written(bench: Bench, content: str) -> None:
    with pytest.raises(ToolError, match="half of a character"):
        await bench.call("write_file", path="a.txt", content=content)
    assert not (bench.path / "a.txt").exists()


async def test_a_redaction_marker_is_never_written_over_the_real_value(bench: Bench) -> None:
    (bench.path / ".env").write_text("API_KEY=abc123def456\nDEBUG=1\n")
    with pytest.raises(ToolError, match="redaction marker"):
        await bench.call("write_file", path=".env", content="API_KEY=[redacted:api_key]\nDEBUG=0\n")
    with pytest.raises(ToolError, match="redaction marker"):
        await bench.call("edit_file", path=".env", old="DEBUG=1", new="[redacted:api_key]")
    with pytest.raises(ToolError, match="the file holds the real value"):
        await bench.call("edit_file", path=".env", old="API_KEY=[redacted:api_key]\nDEBUG=1", new="DEBUG=0")
    await bench.call("edit_file", path=".env", old="DEBUG=1", new="DEBUG=0")
    assert (bench.path / ".env").read_text() == "API_KEY=abc123def456\nDEBUG=0\n"


async def test_a_worker_that_lost_the_run_writes_nothing(bench: Bench) -> None:
    context = bench.context()
    context.lease.answer = False
    with pytest.raises(ToolError, match="no longer holds the run"):
        await bench.call("write_file", context, path="a.txt", content="x")
    assert os.listdir(bench.path) == []


async def test_a_dry_run_checks_and_writes_nothing(bench: Bench) -> None:
    (bench.path / "a.txt").write_text("one")
    context = bench.context(dry_run=True)
    for name, args in {
        "write_file": {"path": "b.txt", "content": "x"},
        "edit_file": {"path": "a.txt", "old": "one", "new": "two"},
        "apply_patch": {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"},
    }.items():
        assert (await bench.call(name, context, **args)).status == "dry_run"
    with pytest.raises(ToolError, match="does not occur"):
        await bench.call("edit_file", context, path="a.txt", old="none", new="two")
    assert (bench.path / "a.txt").read_text() == "one"
    assert os.listdir(bench.path) == ["a.txt"]


@pytest.mark.case("A2-11")
async def test_parallel_edits_under_every_spelling_all_land(bench: Bench) -> None:
    (bench.path / "d1").mkdir()
    (bench.path / "d2").symlink_to("d1")
    (bench.path / "real.txt").write_text("".join(f"slot {n}\n" for n in range(40)))
    (bench.path / "link.txt").symlink_to("real.txt")
    names = ["real.txt", "./link.txt", "d1/../real.txt", str(bench.path / "link.txt")]
    await asyncio.gather(
        *(bench.call("edit_file", path=names[n % 4], old=f"slot {n}\n", new=f"done {n}\n") for n in range(40))
    )
    assert (bench.path / "real.txt").read_text() == "".join(f"done {n}\n" for n in range(40))
    assert (bench.path / "link.txt").is_symlink()


@pytest.mark.case("A2-11")
async def test_of_two_who_make_one_new_file_one_wins_whole(bench: Bench) -> None:
    (bench.path / "d1").mkdir()
    (bench.path / "d2").symlink_to("d1")
    contents = {f"{directory}/new.txt": directory * 50_000 for directory in ("d1", "d2")}
    results = await asyncio.gather(
        *(bench.call("write_file", path=path, content=content) for path, content in contents.items()),
        return_exceptions=True,
    )
    assert (bench.path / "d1" / "new.txt").read_text() in contents.values()
    made = [r for r in results if not isinstance(r, BaseException) and r.text.startswith("Made")]
    others = [r for r in results if r not in made]
    assert len(made) == 1
    assert all("Conflict" in str(r) if isinstance(r, ToolError) else "Replaced" in r.text for r in others)  # type: ignore[union-attr]


EDITOR = """
import asyncio, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.agents.tools.conftest import Bench
async def main(first):
    bench = Bench(Path({workspace!r}))
    for n in range(first, 60, 3):
        await bench.call("edit_file", path={path!r}, old=f"slot {{n}}\\n", new=f"done {{n}}\\n")
asyncio.run(main(int(sys.argv[1])))
"""


@pytest.mark.case("A2-11")
async def test_edits_from_several_processes_all_land(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.path / "real.txt").write_text("".join(f"slot {n}\n" for n in range(60)))
    (bench.path / "link.txt").symlink_to("real.txt")
    editors = []
    for first, path in enumerate(["real.txt", "link.txt", "./real.txt"]):
        code = EDITOR.format(root=ROOT, workspace=str(bench.path), path=path)
        editors.append(subprocess.Popen([sys.executable, "-c", code, str(first)], cwd=ROOT))
    assert [await asyncio.to_thread(editor.wait) for editor in editors] == [0, 0, 0]
    assert (bench.path / "real.txt").read_text() == "".join(f"done {n}\n" for n in range(60))


@pytest.mark.case("A2-11")
async def test_a_change_by_somebody_who_takes_no_lock_is_a_conflict(bench: Bench) -> None:
    (bench.path / "a.txt").write_text("one")
    context = bench.context()

    class Meddling:
        """Asked right before the rename."""

        def held(self) -> bool:
            return True

        @property
        def cancelled(self) -> bool:
            (bench.path / "a.txt").write_text("by an editor")
            return False

    context.cancel = Meddling()  # type: ignore[assignment]
    with pytest.raises(ToolError, match="Conflict"):
        await bench.call("edit_file", context, path="a.txt", old="one", new="two")
    assert (bench.path / "a.txt").read_text() == "by an editor"


@pytest.mark.case("A2-06")
async def test_a_cancelled_call_that_waits_for_a_lock_never_writes(bench: Bench) -> None:
    from agents.tools.locks import locked

    context = bench.context()
    with locked([os.path.realpath(bench.path / "a.txt")], bench.context().cancel):
        task = asyncio.create_task(bench.call("write_file", context, path="a.txt", content="late"))
        while not task.done() and context.cancel.cancelled is False:
            await asyncio.sleep(0.05)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert context.cancel.cancelled
    # Whoever comes next gets the lock: the thread of the cancelled call has let go, or is about to.
    await bench.call("write_file", path="a.txt", content="next")
    assert (bench.path / "a.txt").read_text() == "next"
