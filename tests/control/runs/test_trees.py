"""One request stops a tree that is spread over several workers: sockets, shells, blocking Python, all of it."""

import pytest

from tests.bench.stack import stack
from tests.bench.trees import PARTS, trial

pytestmark = [pytest.mark.chaos]


def test_a_tree_over_three_workers_stops_as_one() -> None:
    with stack(workers=3) as console:
        taken = [trial(console, f"t{number}") for number in range(2)]
        taken.append(trial(console, "deaf", trap=True))
    assert [one.verified for one in taken] == [1 + PARTS] * 3
    assert max(one.workers for one in taken) > 1
    # The limits of `make bench` are a tenth of these; here the machine is shared.
    assert max(one.sockets for one in taken) < 5.0
    assert max(one.processes for one in taken) < 6.0
