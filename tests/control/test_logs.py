"""Logs: JSON lines that name their process and their run, and no secrets in either form."""

import asyncio
import io
import logging
from collections.abc import Callable, Iterator

import orjson
import pytest

from control import logs

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
logger = logging.getLogger("agents.engine.somewhere")


@pytest.fixture
def lines(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], io.StringIO]]:
    """Configure in one form, with the lines in memory; whatever handlers were there come back."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level

    def configure(form: str) -> io.StringIO:
        settings.LOG_FORMAT = form
        said = io.StringIO()
        monkeypatch.setattr("sys.stderr", said)
        logs.configure("worker", "w-1")
        return said

    yield configure
    logging.captureWarnings(False)
    root.handlers[:] = before
    root.setLevel(level)


def test_a_line_tells_time_level_logger_process_and_worker(lines) -> None:
    said = lines("json")
    logger.warning("it took %d s", 3)
    line = orjson.loads(said.getvalue())
    assert line.pop("time").endswith("Z") and line.pop("pid") > 0
    assert line == {
        "level": "warning",
        "logger": "agents.engine.somewhere",
        "process": "worker",
        "worker": "w-1",
        "message": "it took 3 s",
    }


def test_what_tasks_of_a_run_log_names_the_run_and_others_do_not(lines) -> None:
    said = lines("json")

    async def deep(name: str) -> None:
        await asyncio.sleep(0)
        logger.warning("from %s", name)

    async def drive(run: str, epoch: int) -> None:
        with logs.of_run(run, epoch):
            await asyncio.gather(deep(run), asyncio.to_thread(logger.warning, "from %s", run))

    async def both() -> None:
        await asyncio.gather(drive("r-1", 1), drive("r-2", 7), deep("nobody"))

    asyncio.run(both())
    found = [orjson.loads(line) for line in said.getvalue().splitlines()]
    assert len(found) == 5
    for line in found:
        assert line["message"] == f"from {line.get('run', 'nobody')}"
        assert line.get("epoch") == {"r-1": 1, "r-2": 7}.get(line.get("run", ""))


def test_a_traceback_is_one_line_and_holds_no_key(lines) -> None:
    said = lines("json")
    try:
        raise ValueError(f"bad key {KEY}")
    except ValueError:
        logger.exception("refused with %s", KEY)
    (text,) = said.getvalue().splitlines()
    line = orjson.loads(text)
    assert "ValueError" in line["error"] and "Traceback" in line["error"]
    assert KEY not in text and "[redacted:" in text


def test_lines_for_people_name_the_run_and_hide_keys_too(lines) -> None:
    said = lines("human")
    with logs.of_run("r-1", 2):
        logger.error("refused with %s", KEY)
        logger.error("run r-1 ended")
    first, second = said.getvalue().splitlines()
    assert "worker ERROR agents.engine.somewhere: refused with" in first and first.endswith("[run r-1]")
    assert KEY not in first
    assert second.endswith("run r-1 ended")
