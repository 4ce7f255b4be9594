"""A virtual environment of its own that holds this project, built and installed as a wheel, the distributions that it
names as its own, and pytest: nothing else of what the tests run in, and nothing from a network.

The other distributions are those that are installed here, by links to their files.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = "pilothouse"


def make(folder: Path) -> Path:
    """The interpreter of the environment that it makes there."""
    wheels = folder / "wheels"
    _pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels), str(ROOT))
    home = folder / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (wheel,) = wheels.glob(f"{PROJECT}-*.whl")
    _pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    library = Path(_out([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]))
    for one in _needed(PROJECT, "pytest"):
        if one.metadata["Name"] != PROJECT:
            _link(one, library)
    return python


def installed(python: Path) -> set[str]:
    """The names of what is installed there, small and with dashes."""
    lines = _pip("--python", str(python), "list", "--format=freeze").splitlines()
    return {line.partition("==")[0].lower().replace("_", "-") for line in lines}


def check(python: Path) -> str:
    """What pip says of whether everything that is needed is there; raises if something is missing."""
    return _pip("--python", str(python), "check")


def _needed(*names: str) -> Iterator[Distribution]:
    """These distributions and all that they need here, each once."""
    seen: set[tuple[str, frozenset[str]]] = set()
    given: set[str] = set()
    waiting = [(Requirement(name).name, frozenset[str]()) for name in names]
    while waiting:
        name, extras = waiting.pop()
        key = name.lower().replace("_", "-"), extras
        if key in seen:
            continue
        seen.add(key)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # `check` tells if it is missed
        if key[0] not in given:
            given.add(key[0])
            yield found
        waiting += [(one.name, frozenset(one.extras)) for one in _requirements(found, extras)]


def _requirements(found: Distribution, extras: frozenset[str]) -> Iterable[Requirement]:
    for text in found.requires or ():
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield one


def _link(found: Distribution, library: Path) -> None:
    """Every file of it that lies beside the others; scripts are not needed."""
    for file in found.files or ():
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        place, there = library / file, Path(str(found.locate_file(file)))
        if there.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(there)


def _pip(*words: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    return _out(command)


def _out(command: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout.strip()
