"""Callers of each role; no broker and no bus behind the record."""

import pytest

from tests.control.api.callers import Caller, caller


@pytest.fixture(autouse=True)
def _quiet(quiet: None, settings) -> None:
    """Nothing leaves the database."""
    # A default model also where settings are those of production.
    settings.DRILL_URL_GIVEN = True


@pytest.fixture
def viewer(db: None) -> Caller:
    return caller("viewer")


@pytest.fixture
def operator(db: None) -> Caller:
    return caller("operator")


@pytest.fixture
def admin(db: None) -> Caller:
    return caller("admin")


@pytest.fixture
def stranger(db: None) -> Caller:
    return Caller()
