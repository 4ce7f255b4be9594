"""What every test shares: a skip says what is missing and how to get it; with REQUIRE_ALL=1 a skip is a failure."""

import os
from collections.abc import Generator
from typing import Any

import pytest

from tests import children, pieces

NEEDS = ("browser", "postgres", "redis", "servers")


def pytest_configure() -> None:
    """On Redis these tests hear only themselves; so does what they start, unless it has a prefix of its own."""
    from django.conf import settings

    settings.REDIS_PREFIX = os.environ["REDIS_PREFIX"] = children.redis_prefix("process")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        if item.get_closest_marker(marker) and (missing := pieces.missing(marker)):
            pytest.skip(str(missing))


def _failed_if_skipped(report: Any) -> Any:
    if os.environ.get("REQUIRE_ALL") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.longrepr = f"REQUIRE_ALL=1 turns this skip into a failure: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    return _failed_if_skipped((yield))


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The browser that the tests marked `browser` drive."""
    path = pieces.chromium()
    if path is None:
        pytest.skip(str(pieces.missing("browser")))
    return path
