"""Which tools there are and what becomes of argument text."""

import json

import pytest

from agents.errors import ToolError
from agents.policy.batching import plan
from agents.ports import ToolSpec
from agents.spec import ConcurrencyClass, Resume
from agents.tools.registry import Registry, default_tools, parse_args
from tests.agents.engine.doubles import FunctionTool
from tests.agents.tools.conftest import Bench

NEEDS = ToolSpec(
    name="purge",
    description="",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["path"],
    },
)
NEEDS_NOTHING = ToolSpec(name="all", description="", parameters={"type": "object", "properties": {}})


def test_the_default_tools_are_those_of_the_contract_and_the_web_is_off() -> None:
    assert Registry(default_tools()).names == (
        "list_files",
        "read_file",
        "search_files",
        "write_file",
        "edit_file",
        "apply_patch",
        "run_command",
        "clarify",
        "delegate",
    )
    assert Registry(default_tools(web=True)).names[-1] == "web_fetch"


def test_what_only_reads_is_safe_and_may_run_again() -> None:
    rerun = {spec.name for spec in Registry(default_tools(web=True)).specs if spec.resume is Resume.RERUN}
    assert rerun == {"list_files", "read_file", "search_files", "web_fetch", "clarify"}
    classes = {spec.name: spec.concurrency for spec in Registry(default_tools()).specs}
    assert classes["run_command"] is ConcurrencyClass.UNKNOWN
    assert classes["clarify"] is ConcurrencyClass.NEVER
    assert classes["apply_patch"] is ConcurrencyClass.PATH


@pytest.mark.case("A2-07")
@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('{"path": ', "char 9"),
        ("[]", "not an array (char 0)"),
        ("null", "not null (char 0)"),
        ('"x"', "not a string (char 0)"),
        ("3", "not a number"),
        (r'{"path":"a\dir"}', "char 10"),
        ('{"a":1}{"b":2}', "char 7"),
        ("", "empty"),
        ("   ", "empty"),
        ("{}", "'path' is a required property"),
        ('{"path": 5}', "path: 5 is not of type 'string'"),
        ('{"path": "a", "n": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000, "no valid JSON"),
        ('{"path": "a", "n": ' + "9" * 10_000 + "}", "no valid JSON"),
    ],
)
def test_bad_arguments_never_run_and_get_the_position_and_the_schema(raw: str, says: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_args(NEEDS, raw)
    assert says in caught.value.message
    assert json.dumps(NEEDS.parameters, separators=(",", ":")) in caught.value.message
    assert "was not run" in caught.value.message
    assert caught.value.kind == "bad_args"


@pytest.mark.case("A2-07")
@pytest.mark.parametrize("raw", ["", "   ", "\n", "{}"])
def test_blank_means_no_arguments_where_none_is_required(raw: str) -> None:
    assert parse_args(NEEDS_NOTHING, raw) == {}


@pytest.mark.case("A2-07")
def test_valid_arguments_arrive_untouched_whatever_their_text_looks_like() -> None:
    raw = json.dumps({"path": '}{ {"a":1}{"b":2} \\d  ', "extra": [None, 1.5, "\ud83d"]})
    assert parse_args(NEEDS, raw) == json.loads(raw)


async def test_what_is_optional_may_also_be_null(bench: Bench) -> None:
    (bench.path / "a").write_text("x")
    assert "a (1 bytes)" in (await bench.call_raw("list_files", '{"path": null}')).text


def test_every_tool_says_which_paths_it_touches_even_for_nonsense(bench: Bench) -> None:
    (bench.path / "real").mkdir()
    (bench.path / "link").symlink_to("real")
    for tool in default_tools():
        touches = getattr(tool, "touches", None)
        if touches is None:
            continue
        for path in ("link/x", "../../etc", "a\x00b", "\ud800", ""):
            args = {"path": path, "patch": f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"}
            for touched in touches(args, str(bench.path)):
                assert touched.startswith(str(bench.path))
    reads = getattr(bench.tool("read_file"), "touches")({"path": "link/x"}, str(bench.path))  # noqa: B009
    assert reads == (str(bench.path / "real" / "x"),)


def test_delegates_of_one_batch_run_together_but_not_beside_a_write(bench: Bench) -> None:
    from agents.policy.batching import Planned

    def planned(call: str, name: str, **args: str) -> Planned:
        tool = bench.tool(name)
        paths = tool.touches(args, str(bench.path))  # type: ignore[attr-defined]
        concurrency = tool.spec.concurrency
        return Planned(call=call, concurrency=concurrency, paths=paths, writes=concurrency is ConcurrencyClass.PATH)

    calls = [
        planned("1", "delegate", task="a"),
        planned("2", "delegate", task="b"),
        planned("3", "write_file", path="x"),
        planned("4", "delegate", task="c"),
    ]
    assert plan(calls).groups == (("1", "2"), ("3",), ("4",))


def test_of_two_tools_of_one_name_the_first_one_stays() -> None:
    own, first, second = (FunctionTool(name, _nothing) for name in ("own", "mcp__a__b__c", "mcp__a__b__c"))
    registry = Registry([own]).extended([first, second, FunctionTool("own", _nothing)])
    assert registry.get("mcp__a__b__c") is first and registry.get("own") is own


async def _nothing(args: object, context: object) -> str:
    return ""
