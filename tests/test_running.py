"""The pages for operators name nothing that is not there: commands, settings, metrics, files."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from django.utils import timezone

from control.api import metrics
from control.runs.families import FAMILIES, PREFIX

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / "running.md", ROOT / "docs" / "sizing.md"]
RULES = ROOT / "deploy" / "prometheus" / "pilothouse.rules.yaml"
_METRIC = re.compile(rf"\b{PREFIX}[a-z_]+\b")


@pytest.fixture
def told(db: None) -> set[str]:
    """Every name under which `/metrics` has or may have a sample."""
    text = "".join(metrics._all(timezone.now()))
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    histograms = {f"{PREFIX}{name}" for name, family in FAMILIES.items() if family.bounds}
    return families | {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}


def commands() -> Iterator[list[str]]:
    for page in PAGES:
        for words in re.findall(r"(?:manage\.py|^manage) ([a-z_]+[^`#\n]*)", page.read_text(), re.M):
            yield shlex.split(words.rstrip(".,;: "))


def test_every_command_on_the_pages_exists_and_takes_its_arguments() -> None:
    seen = set()
    for name, *rest in commands():
        command = load_command_class(get_commands()[name], name)
        command.create_parser("manage.py", name).parse_args(rest)
        seen.add(name)
    assert {"migrate", "prune", "drain", "interrupt"} <= seen


def test_every_metric_on_the_pages_and_in_the_rules_is_told(told: set[str]) -> None:
    named = set()
    for path in [*PAGES, RULES]:
        named |= set(_METRIC.findall(path.read_text()))
    assert named - told - {"pilothouse_suite"} == set()
    assert len(named) > 12


def test_every_alert_has_a_first_look() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    page = PAGES[0].read_text()
    for rule in rules:
        assert f"`{rule['alert']}`" in page
        assert rule["annotations"]["summary"] and rule["expr"]


def test_every_file_on_the_pages_is_there() -> None:
    for page in PAGES:
        text = page.read_text()
        for name in re.findall(r"\b((?:deploy|docs|tests)/[\w./@-]*\w)", text):
            assert list(ROOT.glob(name + "*")), name
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (page.parent / link).exists(), link
