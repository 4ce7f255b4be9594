"""A run as a regression test: it passes by its policy in an environment that has this project alone, fails when the
policy is loosened, and holds no secret."""

import os
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from agents.policy.policies import shipped
from agents.spec import Status
from control.fleet.policies import ensure_shipped
from control.incidents import regression
from control.runs.models import Run
from control.runs.refusals import StartRefused
from tests import fresh_venv
from tests.control.incidents.recording import Made, record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
SECRET = "sk-proj-Zk3vN8qT1xW5bY7cD9fG2hJ4"


def spec(policy: str, body: dict[str, Any] | None = None, **limits: Any) -> dict[str, Any]:
    return {
        "id": "r", "root": "r", "parent": None, "path": ["r"], "agent": "default", "task": "t", "prompt": "",
        "tools": [], "model": {"model": "m", "base_url": "http://127.0.0.1:9/v1"},
        "limits": {name: {"value": str(value), "source": "request"} for name, value in limits.items()},
        "policy": policy, "policy_body": shipped(policy) if body is None else body, "workspace": None,
        "labels": {}, "dry_run": False,
    }  # fmt: skip


def looping(policy: str, **limits: Any) -> Run:
    """Reads long files with a secret in them, then fails in the same way until it trips."""
    ensure_shipped()
    reads = [
        Made(tool="read_file", args={"path": f"m{n}.py"}, result=f"API_KEY = '{SECRET}'\nline {n}\n" * 90)
        for n in range(3)
    ]
    writes = [Made(tool="write_file", args={"n": n}, writes={"a.txt": f"{SECRET} {'AB'[n % 2]}" * 50}) for n in (0, 1)]
    args = {"path": "gone.py", "token": SECRET}
    fails = [Made(tool="edit_file", args=args, result="error: no such text", failed=True)] * 8
    return record([*reads, *writes, *fails], status=Status.TRIPPED, spec=spec(policy, **limits))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment made for this, with the project from a wheel of this checkout."""
    return fresh_venv.make(tmp_path_factory.mktemp("fresh"))


def tried(python: Path, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    # Nothing of what these tests run in: no path to the checkout, no settings, no console.
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
    given = {**kept, **environment}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=120, check=False)


def test_the_fresh_environment_holds_this_project_from_its_wheel_and_nothing_of_ours(
    fresh: Path, tmp_path: Path
) -> None:
    assert fresh_venv.check(fresh) == "No broken requirements found."
    there = fresh_venv.installed(fresh)
    assert {"pilothouse", "pytest", "orjson"} <= there
    assert not there & {"pytest-django", "hypothesis", "ruff", "mypy", "playwright", "hatchling"}
    ask = "import agents, sys; print(agents.__file__, sys.prefix)"
    done = subprocess.run([str(fresh), "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    where, prefix = done.stdout.split()
    assert where.startswith(prefix) and prefix == str(fresh.parent.parent)


@pytest.mark.parametrize(("policy", "call"), [("strict", 8), ("default", 11)])
def test_the_test_passes_by_its_policy_and_fails_by_a_looser_one(
    fresh: Path, tmp_path: Path, policy: str, call: int
) -> None:
    made = regression.export(looping(policy))
    zipfile.ZipFile(BytesIO(made.zipped())).extractall(tmp_path)
    folder = tmp_path / made.name
    assert {path.suffix for path in folder.iterdir()} == {".py", ".jsonl", ".toml"}
    assert f"is_stopped_at_call_{call}" in (folder / f"test_{made.name}.py").read_text()
    text = "".join(path.read_text() for path in folder.iterdir())
    assert SECRET not in text and SECRET[8:] not in text
    assert len(text) < 12_000
    passed = tried(fresh, folder)
    assert passed.returncode == 0 and "1 passed" in passed.stdout, passed.stdout + passed.stderr
    loose = tmp_path / "loose.toml"
    body: dict[str, Any] = shipped(policy)
    if policy == "strict":
        body["fuses"]["max_identical_calls"] = 5
    else:
        body["rules"]["repeat_error"]["stop"] = 7
    loose.write_text(tomli_w.dumps(body))
    failed = tried(fresh, folder, REGRESSION_POLICY=str(loose))
    assert failed.returncode == 1 and "1 failed" in failed.stdout, failed.stdout + failed.stderr


def test_a_limit_of_the_run_itself_is_part_of_the_policy_that_is_kept() -> None:
    made = regression.export(looping("off", max_steps=4))
    assert "max_steps = 4" in made.files[f"{made.name}.toml"]
    assert 'RULE = 5, "max_steps"' in made.files[f"test_{made.name}.py"]


def test_a_run_that_nothing_of_it_trips_is_refused_and_another_policy_can_be_named() -> None:
    run = looping("off")
    with pytest.raises(StartRefused, match="trip nothing"):
        regression.export(run)
    assert '"max_identical_calls"' in regression.export(run, "strict").files[f"test_run_{run.pk[-12:]}.py"]
    with pytest.raises(StartRefused, match="no policy 'nosuch'"):
        regression.export(run, "nosuch")
    with pytest.raises(StartRefused, match="no tool call"):
        regression.export(record([], spec=spec("strict")))
