"""The commands as real processes: exit codes, and nothing but a sentence on stderr."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def manage(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """One command against an embedded database of its own."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV")}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *args],
        env=kept | {"DATA_DIR": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=home,
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("home")
    done = manage(made, "migrate", "-v0")
    assert done.returncode == 0, done.stderr
    return made


def test_a_token_is_alone_on_stdout(home: Path):
    done = manage(home, "create_token", "ci", "--role", "operator")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ph_") and len(done.stdout.split()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["run_agent", "nobody", "Look around"],
        ["run_agent", "default", ""],
        ["run_agent", "default", "Look around", "--workspace", "/etc"],
        ["steer", "nonsense", "note"],
        ["interrupt", "nonsense"],
        ["create_token", "x", "--role", "king"],
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(home: Path, args: list[str]):
    done = manage(home, *args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.strip() and "Traceback" not in done.stderr


def test_without_a_database_it_says_how_to_get_one(tmp_path: Path):
    done = manage(tmp_path, "run_agent", "default", "Look around")
    assert done.returncode == 1
    assert "manage.py migrate" in done.stderr and "Traceback" not in done.stderr
