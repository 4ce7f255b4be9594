"""From a path that a model wrote to the real one."""

import os
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import ToolError
from agents.tools.places import find

NAMES = st.sampled_from(["a", "link", "up", "out", "gone", "file", ".", "..", "", "/"])


@given(st.lists(NAMES, max_size=5))
def test_a_place_is_where_the_system_says_that_the_path_leads(names: list[str]) -> None:
    with TemporaryDirectory() as made:
        top = os.path.realpath(made)
        os.makedirs(f"{top}/a/a")
        os.symlink("a", f"{top}/link")
        os.symlink("..", f"{top}/a/up")
        os.symlink("/etc", f"{top}/a/out")
        open(f"{top}/a/file", "w").close()
        path = "/".join(names)
        real = os.path.realpath(os.path.join(top, path or "."))
        if real == top or real.startswith(f"{top}/"):
            assert find(made, path).real == real
        else:
            with pytest.raises(ToolError):
                find(made, path)
