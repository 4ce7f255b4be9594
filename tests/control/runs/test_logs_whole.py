"""What a real worker logs."""

from collections.abc import Callable

import orjson

from tests.control.runs.processes import House, reach
from tests.scripted_server import say


def test_a_worker_logs_json_lines_in_which_each_run_is_named(make_house: Callable[..., House]) -> None:
    house = make_house(lambda request: say("done"), LOG_FORMAT="json", LOG_LEVEL="INFO")
    house.worker()
    first, second = house.begin("one"), house.begin("two")
    for run in (first, second):
        reach(run, "completed")
    text = (house.root / "worker-0.log").read_text()
    found = [orjson.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert {first, second} <= {line.get("run") for line in found}
    assert {line["epoch"] for line in found if "run" in line} == {1}
    assert len({line["worker"] for line in found}) == 1
    rest = [line for line in text.splitlines() if line and not line.startswith("{")]
    assert all(" ready on " in line for line in rest), rest
