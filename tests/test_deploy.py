"""What `deploy/` holds is true: it parses, its commands and settings exist, nothing in it breaks tools or draining."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
# Of others: the interpreter, the database's image, and the tables that the loop reads by itself.
FOREIGN = {"PYTHONUNBUFFERED", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "MODEL_CATALOG"}
_RECORD = """
import json, os

class Recorded(dict):
    asked = set()
    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)
    def __getitem__(self, name):
        self.asked.add(name)
        return super().__getitem__(name)

os.environ = Recorded(os.environ)
import control.settings
print(json.dumps(sorted(Recorded.asked)))
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every variable that the settings ask the environment for."""
    environment = {"PATH": "/usr/bin:/bin", "DATA_DIR": str(tmp_path_factory.mktemp("data")), "SECRET_KEY": "x"}
    asked = subprocess.run(
        [sys.executable, "-c", _RECORD], cwd=DEPLOY.parent, env=environment, capture_output=True, check=True, text=True
    )
    return set(json.loads(asked.stdout)) | FOREIGN


def section(path: Path, name: str = "Service") -> dict[str, list[str]]:
    """One section of a unit; a key may come several times."""
    values: dict[str, list[str]] = {}
    here = ""
    for line in path.read_text().splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            here = found[1]
        elif line.strip() and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals and re.fullmatch(r"[A-Z]\w+", key), line
            if here == name:
                values.setdefault(key, []).append(value)
    return values


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return loaded


def our_services() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, service in compose()["services"].items():
        if "build" in service:
            yield name, service


def parses(words: list[str]) -> None:
    """Fails unless `manage.py` has this command and it takes these arguments."""
    name, *rest = words
    command = load_command_class(get_commands()[name], name)
    command.create_parser("manage.py", name).parse_args(rest)


def test_every_command_exists_and_takes_its_arguments() -> None:
    for unit in UNITS:
        (line,) = section(unit)["ExecStart"]
        python, manage, *words = shlex.split(line.replace("%i", "8000"))
        assert python.endswith("/.venv/bin/python") and manage == "manage.py"
        parses(words)
    for _, service in our_services():
        parses(service["command"])
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", (DEPLOY / "Dockerfile").read_text(), re.M)
    assert json.loads(entry) == ["python", "manage.py"]
    (command,) = re.findall(r"^CMD (.*)$", (DEPLOY / "Dockerfile").read_text(), re.M)
    parses(json.loads(command))


def test_every_variable_is_one_that_the_settings_read(known: set[str]) -> None:
    named: set[str] = set()
    for unit in UNITS:
        for line in section(unit).get("Environment", []):
            named |= {word.partition("=")[0] for word in shlex.split(line)}
    example = (DEPLOY / "systemd" / "environment.example").read_text()
    named |= set(re.findall(r"^#?([A-Z_]+)=", example, re.M))
    for service in compose()["services"].values():
        named |= set(service.get("environment", {}))
    for line in re.findall(r"^ENV (.*)$", (DEPLOY / "Dockerfile").read_text(), re.M):
        named |= {word.partition("=")[0] for word in shlex.split(line)}
    assert named - known == set()
    assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DATA_DIR", "ALLOWED_HOSTS"} <= named


def test_a_worker_that_stops_has_time_to_hand_over_and_its_tools_are_not_told_before_it() -> None:
    service = section(DEPLOY / "systemd" / "pilothouse-worker@.service")
    assert service["KillMode"] == ["mixed"]
    assert float(service["TimeoutStopSec"][0]) >= settings.DRAIN_SECONDS + 10
    worker = compose()["services"]["worker"]
    assert float(worker["stop_grace_period"].removesuffix("s")) >= settings.DRAIN_SECONDS + 10
    assert worker["init"] is True


def test_a_workers_fences_leave_its_tools_alone() -> None:
    service = section(DEPLOY / "systemd" / "pilothouse-worker@.service")
    assert service["OOMPolicy"] == ["continue"]
    breaking = {"MemoryDenyWriteExecute", "SystemCallFilter", "RestrictNamespaces", "PrivateUsers", "PrivateDevices"}
    assert breaking & set(service) == set()
    assert "PrivateNetwork" not in service


def test_the_desk_can_see_and_end_what_a_worker_leaves() -> None:
    desk, worker = (section(DEPLOY / "systemd" / f"pilothouse-{name}.service") for name in ("desk", "worker@"))
    assert desk["User"] == worker["User"] == ["pilothouse"]
    for service in (desk, worker):
        assert {"PrivateUsers", "PrivatePIDs", "ProcSubset"} & set(service) == set()


def test_units_hold_no_rights_they_do_not_need() -> None:
    for unit in UNITS:
        service = section(unit)
        assert service["NoNewPrivileges"] == ["yes"] and service["CapabilityBoundingSet"] == [""]
        assert service["ProtectSystem"] == ["strict"] and service["StateDirectory"] == ["pilothouse"]
        assert service["Restart"] == ["always"]


def test_the_target_starts_all_three(tmp_path: Path) -> None:
    (wants,) = section(DEPLOY / "systemd" / "pilothouse.target", "Unit")["Wants"]
    wanted = {re.sub(r"@\w+", "@", name) for name in wants.split()}
    assert wanted == {unit.name for unit in UNITS}


def test_systemd_itself_finds_no_fault(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    for unit in [*UNITS, DEPLOY / "systemd" / "pilothouse.target"]:
        text = unit.read_text().replace("/opt/pilothouse/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text.replace("WorkingDirectory=/opt/pilothouse", "WorkingDirectory=/"))
    if verify is None:  # read by the other tests all the same
        return
    names = ("pilothouse-web@8000.service", "pilothouse-worker@1.service", "pilothouse-desk.service")
    found = subprocess.run(
        [verify, "verify", "--man=no", *(str(tmp_path / name) for name in names)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    about_ours = [line for line in found.stderr.splitlines() if "pilothouse" in line]
    assert about_ours == []


def test_compose_has_all_parts_and_each_waits_for_what_it_needs() -> None:
    services = compose()["services"]
    assert {"postgres", "redis", "migrate", "web", "worker", "desk"} == set(services)
    for name, service in services.items():
        for needed in service.get("depends_on", {}):
            assert needed in services, name
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in compose()["volumes"], name
    for name in ("web", "worker", "desk"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
        # Workers share the volume in which workspaces lie, so they bear one name: runs are pinned by it.
        assert services[name]["hostname"] == services["worker"]["hostname"]
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]


def test_images_and_secrets_name_no_registry_and_no_value() -> None:
    text = (DEPLOY / "Dockerfile").read_text() + (DEPLOY / "compose.yaml").read_text()
    for image in re.findall(r"^(?:FROM|\s+image:) (\S+)$", text, re.M):
        assert "/" not in image, image
    assert not re.search(r"--(extra-)?index-url|--trusted-host", text)
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD"):
        for value in re.findall(rf"^\s+{name}: (.*)$", text, re.M):
            assert value.startswith("${" + name + ":?"), value


def test_what_the_image_copies_is_there() -> None:
    for line in re.findall(r"^COPY (.*)$", (DEPLOY / "Dockerfile").read_text(), re.M):
        for word in line.split()[:-1]:
            assert (DEPLOY.parent / word).exists(), word


def test_the_example_environment_reads_as_systemd_reads_it() -> None:
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string("[environment]\n" + (DEPLOY / "systemd" / "environment.example").read_text())
    assert parser["environment"]["SECRET_KEY"] == "", "an example holds no key"
