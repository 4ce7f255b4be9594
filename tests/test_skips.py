"""A skip says what is missing and how to get it, and with REQUIRE_ALL=1 it is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = {
    "marked": "import pytest\n@pytest.mark.browser\ndef test_page(): pass\n",
    "called": "import pytest\ndef test_piece(): pytest.skip('no piece')\n",
    "module": "import pytest\npytest.skip('no module', allow_module_level=True)\n",
}


def outcome(tmp_path: Path, sample: str, **env: str) -> tuple[int, str]:
    (tmp_path / "test_sample.py").write_text(SAMPLES[sample])
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = browser\n")
    # No browser on this PATH, and none named.
    clean = {name: value for name, value in os.environ.items() if name not in ("REQUIRE_ALL", "CHROMIUM")}
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "tests.conftest", "-p", "no:django", str(tmp_path)]
    done = subprocess.run(
        command,
        env={**clean, "PATH": "/nonexistent", "PYTHONPATH": str(Path(__file__).parent.parent), **env},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_skip_passes_alone_and_fails_when_all_is_required(tmp_path: Path, sample: str) -> None:
    code, said = outcome(tmp_path, sample)
    assert "1 skipped" in said and code in (0, 5)
    code, said = outcome(tmp_path, sample, REQUIRE_ALL="1")
    assert code not in (0, 5) and "REQUIRE_ALL=1 turns this skip into a failure" in said


def test_a_skip_names_the_piece_and_the_way_to_get_it(tmp_path: Path) -> None:
    _, said = outcome(tmp_path, "marked")
    assert "Chromium is missing" in said and "apt-get install chromium" in said
