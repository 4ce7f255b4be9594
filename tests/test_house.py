"""The house stays liveable: no file over 350 lines, no function over 60; the medians are reported."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE = 350
MAX_FUNCTION = 60


def rooms() -> list[Path]:
    """Every source file of the two packages, migrations aside."""
    found = (path for room in ("agents", "control") for path in (ROOT / room).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def test_no_file_is_longer_than_350_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in rooms()}
    print(f"\nfiles: {len(lengths)}, median {median(lengths.values()):.0f} lines, longest {max(lengths.values())}")
    assert {name: length for name, length in lengths.items() if length > MAX_FILE} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    lengths = dict(found for path in rooms() for found in functions(path))
    print(f"\nfunctions: {len(lengths)}, median {median(lengths.values()):.0f} lines, longest {max(lengths.values())}")
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION} == {}


def test_every_file_opens_with_a_sentence_that_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in rooms()
        if path.read_text(encoding="utf-8").strip()
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
