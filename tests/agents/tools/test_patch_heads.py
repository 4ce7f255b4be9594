"""What a diff says outside of its hunks: quoted names, empty files, modes, copies, and lines that look like heads."""

import pytest

from agents.errors import ToolError
from tests.agents.tools.conftest import Bench


async def refused(bench: Bench, patch: str) -> str:
    with pytest.raises(ToolError) as caught:
        await bench.call("apply_patch", patch=patch)
    return caught.value.message


async def test_a_name_in_quotes_is_the_name_that_it_stands_for(bench: Bench) -> None:
    (bench.path / "grün.txt").write_text("a\n")
    await bench.call(
        "apply_patch",
        patch='--- "a/gr\\303\\274n.txt"\n+++ "b/gr\\303\\274n.txt"\n@@ -1 +1 @@\n-a\n+b\n'
        '--- /dev/null\n+++ "b/tab\\there \\"q\\""\n@@ -0,0 +1 @@\n+new\n',
    )
    assert (bench.path / "grün.txt").read_text() == "b\n"
    assert (bench.path / 'tab\there "q"').read_text() == "new\n"


async def test_a_quoted_rename_moves_the_file(bench: Bench) -> None:
    (bench.path / "ü").write_text("a\n")
    await bench.call("apply_patch", patch='diff --git "a/\\303\\274" b/u\nrename from "\\303\\274"\nrename to u\n')
    assert sorted(path.name for path in bench.path.iterdir()) == ["u"]


async def test_empty_files_are_made_and_deleted(bench: Bench) -> None:
    (bench.path / "old one").touch()
    patch = (
        "diff --git a/new one b/new one\nnew file mode 100644\nindex 0000000..e69de29\n"
        "diff --git a/old one b/old one\ndeleted file mode 100644\nindex e69de29..0000000\n"
    )
    await bench.call("apply_patch", patch=patch)
    assert [path.name for path in bench.path.iterdir()] == ["new one"]


@pytest.mark.parametrize(
    ("head", "advice"),
    [
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "chmod"),
        ("diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n", "cp"),
    ],
)
async def test_a_part_that_cannot_be_done_here_is_refused_and_never_left_out(
    bench: Bench, head: str, advice: str
) -> None:
    (bench.path / "f").write_text("a\n")
    (bench.path / "x").write_text("a\n")
    rest = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    for patch in (head + rest, rest + head):
        assert advice in await refused(bench, patch)
    assert (bench.path / "x").read_text() == "a\n"


async def test_lines_of_dashes_and_pluses_are_no_head_of_a_file(bench: Bench) -> None:
    (bench.path / "q.sql").write_text("-- old\nselect\n")
    await bench.call("apply_patch", patch="--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n select\n")
    assert (bench.path / "q.sql").read_text() == "++ new\nselect\n"


async def test_a_file_that_holds_more_than_the_patch_deletes_stays(bench: Bench) -> None:
    (bench.path / "f").write_text("known\nunknown\n")
    patch = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-known\n"
    assert "holds more" in await refused(bench, patch)
    (bench.path / "f").write_text("known\n")
    await bench.call("apply_patch", patch=patch)
    assert not (bench.path / "f").exists()
