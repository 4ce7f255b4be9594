"""The pictures in `docs/`: every page in every look, each on the page that shows them, and light enough for a clone."""

from pathlib import Path

from tests.e2e.shots import ROOMS
from tests.e2e.shots_index import LOOKS, TITLES, file_of, page

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = DOCS / "screenshots"
MOST_BYTES = 8_000_000


def test_every_page_is_there_in_every_look() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {file_of(name, *look) for name in TITLES for look in LOOKS}
    assert set(TITLES) >= set(ROOMS), "what is photographed has a title"


def test_the_page_shows_them_all() -> None:
    assert (DOCS / "screenshots.md").read_text(encoding="utf-8") == page(TITLES, FOLDER.name)


def test_they_are_light_and_really_pictures() -> None:
    pictures = list(FOLDER.iterdir())
    assert sum(path.stat().st_size for path in pictures) < MOST_BYTES
    assert all(path.read_bytes()[8:16] == b"WEBPVP8L" for path in pictures)
