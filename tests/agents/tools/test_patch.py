"""Patches in both forms: all of it fits, or nothing is written."""

from pathlib import Path

import pytest

from agents.errors import ToolError
from tests.agents.tools.conftest import Bench

PYTHON = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 1\n"


@pytest.fixture
def files(bench: Bench) -> Path:
    (bench.path / "a.py").write_text(PYTHON)
    (bench.path / "old.txt").write_text("x\ny\n")
    return bench.path


UNIFIED = """diff --git a/a.py b/a.py
index 111..222 100644
--- a/a.py
+++ b/a.py
@@ -7,3 +7,3 @@ def one():
\x20
 def two():
-    return 1
+    return 2
--- /dev/null
+++ b/sub/new.txt
@@ -0,0 +1,2 @@
+first
+second
--- a/old.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-x
-y
"""

BEGIN = """*** Begin Patch
*** Update File: a.py
@@ def two():
-    return 1
+    return 2
*** Add File: sub/new.txt
+first
+second
*** Delete File: old.txt
*** End Patch
"""


@pytest.mark.parametrize("patch", [UNIFIED, BEGIN, UNIFIED.replace("\n", "\r\n")])
async def test_both_forms_change_make_and_delete(bench: Bench, files: Path, patch: str) -> None:
    output = await bench.call("apply_patch", patch=patch)
    assert (files / "a.py").read_text() == PYTHON[:-2] + "2\n"
    assert (files / "sub" / "new.txt").read_text() == "first\nsecond\n"
    assert not (files / "old.txt").exists()
    assert {edit.path: edit.sha256 is None for edit in output.edits} == {
        "a.py": False,
        "sub/new.txt": False,
        "old.txt": True,
    }


async def test_a_part_that_does_not_fit_leaves_everything_as_it_was(bench: Bench, files: Path) -> None:
    with pytest.raises(ToolError, match=r"Hunk 1 of the patch does not fit 'old.txt'"):
        await bench.call(
            "apply_patch", patch=BEGIN.replace("*** Delete File: old.txt", "*** Update File: old.txt\n-zzz")
        )
    assert (files / "a.py").read_text() == PYTHON
    assert not (files / "sub").exists()


async def test_a_place_that_is_not_the_only_one_is_refused(bench: Bench, files: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n-    return 1\n+    return 2\n*** End Patch"
    with pytest.raises(ToolError, match=r"at 2 places \(lines 5, 9\)"):
        await bench.call("apply_patch", patch=patch)


async def test_wrong_line_numbers_and_counts_are_forgiven(bench: Bench, files: Path) -> None:
    patch = "--- a.py\n+++ a.py\n@@ -20,1 +20,1 @@\n def two():\n-    return 1\n+    return 2\n+    # end\n"
    await bench.call("apply_patch", patch=patch)
    assert (files / "a.py").read_text().endswith("def two():\n    return 2\n    # end\n")


async def test_a_file_is_moved_with_its_mode(bench: Bench, files: Path) -> None:
    (files / "a.py").chmod(0o755)
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: lib/b.py\n@@\n-import os\n+import sys\n*** End Patch"
    await bench.call("apply_patch", patch=patch)
    assert not (files / "a.py").exists()
    assert (files / "lib" / "b.py").read_text() == PYTHON.replace("os", "sys", 1)
    assert (files / "lib" / "b.py").stat().st_mode & 0o777 == 0o755


async def test_line_ends_and_a_missing_last_one_are_kept(bench: Bench) -> None:
    (bench.path / "w.txt").write_bytes(b"one\r\ntwo\nthree\r\nfour\r\nend")
    no_end = "\\ No newline at end of file\n"
    head = "--- a/w.txt\n+++ b/w.txt\n@@ -1,5 +1,5 @@\n-one\n+1\n two\n three\n four\n"
    await bench.call("apply_patch", patch=f"{head}-end\n{no_end}+END\n{no_end}")
    assert (bench.path / "w.txt").read_bytes() == b"1\r\ntwo\nthree\r\nfour\r\nEND"
    await bench.call("apply_patch", patch="*** Begin Patch\n*** Update File: w.txt\n END\n+more\n*** End Patch")
    assert (bench.path / "w.txt").read_bytes() == b"1\r\ntwo\nthree\r\nfour\r\nEND\r\nmore"


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ("hello", "holds no change"),
        ("@@ -1 +1 @@\n-a\n+b\n", "before any file name"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n?\n", "starts neither with"),
        ("*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch", "there already"),
        ("*** Begin Patch\n*** Delete File: none.py\n*** End Patch", "not there"),
        ("*** Begin Patch\n*** Add File: ../x\n+x\n*** End Patch", "outside"),
        ("*** Begin Patch\n*** Add File: x\n+k=[redacted:api_key]\n*** End Patch", "redaction marker"),
        ("*** Begin Patch\n*** Update File: a.py\n@@ def three():\n+x\n*** End Patch", "'def three():'"),
    ],
)
async def test_a_bad_patch_says_what_is_wrong(bench: Bench, files: Path, patch: str, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        await bench.call("apply_patch", patch=patch)
    assert says in caught.value.message


def test_all_paths_of_a_patch_count(bench: Bench) -> None:
    touches = bench.tool("apply_patch").touches  # type: ignore[attr-defined]
    assert touches({"patch": UNIFIED}, str(bench.path)) == tuple(
        str(bench.path / name) for name in ("a.py", "sub/new.txt", "old.txt")
    )
    assert touches({"patch": "nonsense"}, str(bench.path)) == (str(bench.path),)
