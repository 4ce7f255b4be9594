"""Fixtures around the record: what was published and hinted. The factories are in `records.py`."""

import pytest


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The run ids that were handed to Celery."""
    from control.runs import publishing

    seen: list[str] = []
    monkeypatch.setattr(publishing, "_publish", seen.append)
    return seen


@pytest.fixture
def hinted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What went to the bus, by topic."""
    from control.runs import hints

    seen: list[tuple[str, bytes]] = []
    monkeypatch.setattr(hints, "_publish", lambda topic, message: seen.append((topic, message)))
    return seen


@pytest.fixture
def quiet(published: list[str], hinted: list[tuple[str, bytes]]) -> None:
    """No broker and no bus: for tests of the record alone."""
