"""What may stand in an agent's list of servers, and what becomes of what servers say of their tools."""

from typing import Any

import pytest

from agents.errors import ConfigError, ToolError
from agents.ports import ToolSpec
from agents.tools.mcp.config import servers_of
from agents.tools.mcp.schemas import ANYTHING, names_for, parameters_of
from agents.tools.registry import parse_args


def test_servers_are_programs_or_addresses():
    program, address = servers_of(
        [
            {"name": "git", "command": "uvx", "args": ["x"], "env": ["TOKEN"], "tools": ["log"], "timeout": 5},
            {"name": "web", "url": "https://example.com/mcp", "headers_env": {"Authorization": "WEB_AUTH"}},
        ]
    )
    assert (program.command, program.args, program.env, program.timeout_s) == ("uvx", ("x",), ("TOKEN",), 5.0)
    assert program.tools == {"log"}
    assert (address.url, address.headers_env) == ("https://example.com/mcp", {"Authorization": "WEB_AUTH"})


@pytest.mark.parametrize(
    "server",
    [
        {"command": "x"},
        {"name": "a b", "command": "x"},
        {"name": "a"},
        {"name": "a", "command": "x", "url": "http://x"},
        {"name": "a", "url": "ftp://x"},
        {"name": "a", "url": "http://u:p@x/"},
        {"name": "a", "command": "x", "env": {"TOKEN": "value"}},
        {"name": "a", "command": "x", "env": ["TOKEN=value"]},
        {"name": "a", "command": "x", "env": ["SECRET_KEY"]},
        {"name": "a", "command": "x", "timeout": 0},
        {"name": "a", "command": "x", "timeout": True},
        {"name": "a", "command": "x", "tools": "add"},
        {"name": "a", "command": "x", "shell": True},
        {"name": "a", "url": "http://x", "headers_env": {"a\nb": "X"}},
        "x",
    ],
)
def test_a_server_that_could_not_work_or_would_tell_secrets_is_refused(server: Any):
    with pytest.raises(ConfigError) as caught:
        servers_of([server])
    assert caught.value.kind == "bad_mcp_servers"


def test_two_servers_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two servers"):
        servers_of([{"name": "a", "command": "x"}, {"name": "A", "command": "y"}])


def test_names_are_legal_short_and_never_the_same():
    names = names_for("s", ["add", "a.b", "a b", "a/b", "x" * 100, "x" * 99])
    assert list(names.values()) == ["add", "a.b", "a b", "a/b", "x" * 100, "x" * 99]
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in names)


def test_a_plain_schema_stays_as_it_is():
    schema = {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
        "required": ["pattern"],
    }
    assert parameters_of(schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/schema"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        {"type": "object", "description": "x" * 70_000},
    ],
)
def test_a_schema_of_no_use_takes_any_arguments(schema: Any):
    assert parameters_of(schema) == ANYTHING


def test_what_providers_refuse_and_what_could_loop_is_left_out():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "anyOf": [{"required": ["a"]}],
        "properties": {"a": {"type": "string", "pattern": "(a+)+$"}},
    }
    assert parameters_of(schema) == {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize("to", ["a", "missing"])
def test_a_schema_that_goes_in_circles_refuses_the_call_and_no_more(to: str):
    schema = {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": f"#/$defs/{to}"}}}
    spec = ToolSpec(name=f"t_{to}", description="", parameters=parameters_of(schema))
    with pytest.raises(ToolError, match="cannot be checked"):
        parse_args(spec, '{"x": 1}')
