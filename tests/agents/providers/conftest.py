"""Each test runs on an event loop of its own, and so on a client of its own: close it."""

from collections.abc import AsyncIterator

import pytest

from agents.providers import http


@pytest.fixture(autouse=True)
async def closed_client() -> AsyncIterator[None]:
    yield
    await http.close()
