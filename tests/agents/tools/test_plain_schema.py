"""The short way says yes only where the validator does."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents.tools.plain_schema import plainly_fits
from agents.tools.registry import default_tools

NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
ONE = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, unique=True),
        "minimum": st.integers(-2, 2),
        "enum": st.just(["x", 1]),
        "description": st.just("a value"),
    },
)
SCHEMAS = st.fixed_dictionaries(
    {"properties": st.dictionaries(NAMES, ONE | st.booleans())},
    optional={
        "type": st.sampled_from(["object", "array"]),
        "required": st.lists(NAMES, unique=True),
        "additionalProperties": st.booleans() | ONE,
        "minProperties": st.integers(0, 2),
    },
)
VALUES = st.dictionaries(
    NAMES,
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.sampled_from(["x", ""])
    | st.just([])
    | st.just({}),
)


@given(SCHEMAS, VALUES)
def test_what_fits_plainly_fits_by_the_validator(schema: dict[str, Any], value: dict[str, Any]) -> None:
    if plainly_fits(schema, value):
        assert Draft202012Validator(schema).is_valid(value)


def test_ordinary_arguments_of_our_own_tools_need_no_validator() -> None:
    specs = {tool.spec.name: tool.spec for tool in default_tools()}

    assert plainly_fits(specs["list_files"].parameters, {})
    assert plainly_fits(specs["list_files"].parameters, {"path": "src"})
    assert not plainly_fits(specs["read_file"].parameters, {})
    assert not plainly_fits(specs["read_file"].parameters, {"path": 1})
