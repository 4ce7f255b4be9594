"""One whole console and one browser for all these tests; a fresh profile for each, watched for errors."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.e2e.whole.house import House, house
from tests.e2e.whole.scripts import Scripts
from tests.e2e.whole.visits import ARGUMENTS, Visits, sign_in
from tests.scripted_server import ScriptedServer

expect.set_options(timeout=20_000)


@pytest.fixture(scope="session", name="house")
def one_house(chromium_path: str) -> Iterator[House]:
    with house() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium_path: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cookies(house: House, browser: Browser) -> dict[str, Any]:
    """The signed-in profiles of ann, an operator, vic, a viewer, and ada, an admin; each signs in by password once."""
    names = ("ann", "vic", "ada")
    states = await asyncio.gather(*(sign_in(browser, house, name) for name in names))
    return dict(zip(names, states, strict=True))


@pytest_asyncio.fixture(loop_scope="session")
async def visits(house: House, browser: Browser, cookies: dict[str, Any]) -> AsyncIterator[Visits]:
    """Opens pages for people; whatever went wrong on them unseen fails the test at its end."""
    opened = Visits(house=house, browser=browser, cookies=cookies)
    yield opened
    complaints = await opened.close()
    assert complaints == []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def scripts(house: House) -> AsyncIterator[Scripts]:
    """A model server of our own: each test says what its model answers, and when."""
    playing = Scripts()
    async with ScriptedServer(playing.answer, port=house.scripted_port) as server:
        playing.base_url = server.base_url
        yield playing
