"""Which tool calls of one turn may overlap."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agents.policy.batching import MAX_WIDTH, Plan, Planned, overlap, plan
from agents.spec import ConcurrencyClass

NEVER, SAFE, PATH, UNKNOWN = (
    ConcurrencyClass.NEVER,
    ConcurrencyClass.SAFE,
    ConcurrencyClass.PATH,
    ConcurrencyClass.UNKNOWN,
)


def read(*paths: str) -> Planned:
    return Planned(call=f"read {paths}", concurrency=SAFE, paths=paths)


def write(*paths: str) -> Planned:
    return Planned(call=f"write {paths}", concurrency=PATH, paths=paths, writes=True)


def command() -> Planned:
    return Planned(call="command", concurrency=UNKNOWN, writes=True)


def question() -> Planned:
    return Planned(call="question", concurrency=NEVER)


def widths(*calls: Planned, fold_case: bool = False) -> list[int]:
    return [len(group) for group in plan(calls, fold_case=fold_case).groups]


def test_reads_of_the_same_file_overlap() -> None:
    assert widths(read("/w/a"), read("/w/a"), read("/w")) == [3]


def test_a_write_waits_for_a_read_of_the_same_file() -> None:
    assert widths(read("/w/a"), write("/w/a")) == [1, 1]


def test_a_write_waits_for_a_search_of_the_tree_that_holds_it() -> None:
    assert widths(read("/w"), write("/w/deep/down/a")) == [1, 1]
    assert widths(write("/w/deep/down/a"), read("/w/deep")) == [1, 1]


def test_writes_of_different_files_overlap_and_a_name_with_the_same_beginning_is_no_directory() -> None:
    assert widths(write("/w/a"), write("/w/ab"), write("/w/a.txt")) == [3]


def test_a_write_of_several_files_counts_for_all_of_them() -> None:
    assert widths(write("/w/a", "/w/b"), write("/w/c"), write("/w/b")) == [2, 1]


def test_case_counts_only_where_the_file_system_tells_cases_apart() -> None:
    assert widths(write("/w/real.txt"), write("/w/REAL.txt")) == [2]
    assert widths(write("/w/real.txt"), write("/w/REAL.txt"), fold_case=True) == [1, 1]


def test_commands_and_questions_stand_alone() -> None:
    assert widths(read("/w/a"), command(), command(), read("/w/a"), question(), read("/w/a")) == [1] * 6


def test_a_write_that_names_no_path_stands_alone() -> None:
    assert widths(read("/w/a"), write(), read("/w/b")) == [1, 1, 1]


def test_a_reader_of_no_file_goes_beside_any_write() -> None:
    assert widths(write("/w/a"), read()) == [2]


def test_nine_reads_make_a_group_of_eight_and_one() -> None:
    assert widths(*[read(f"/w/{n}") for n in range(9)]) == [8, 1]


def test_the_root_directory_holds_everything() -> None:
    assert widths(write("/"), write("/w/a")) == [1, 1]


def test_the_plan_says_why_it_parted_the_calls() -> None:
    why = plan([read("/w/a"), write("/w/a"), command()]).why
    assert "calls 1 and 2: one reads what the other writes (/w/a)" in why
    assert "call 3 has unknown effects" in why


def test_no_calls_make_no_groups() -> None:
    assert plan([]) == Plan(groups=(), why="no calls")


names = st.lists(st.sampled_from(["a", "b", "A", "ab"]), max_size=3).map(lambda parts: "/" + "/".join(parts))


@st.composite
def batches(draw: st.DrawFn) -> list[Planned]:
    count = draw(st.integers(min_value=0, max_value=24))
    return [
        Planned(
            call=str(n),
            concurrency=draw(st.sampled_from([SAFE, SAFE, PATH, PATH, NEVER, UNKNOWN])),
            paths=tuple(draw(st.lists(names, max_size=3))),
            writes=draw(st.booleans()),
        )
        for n in range(count)
    ]


def disturb(one: Planned, other: Planned) -> bool:
    """The rule said again, without the planner's shortcuts."""
    if NEVER in (one.concurrency, other.concurrency) or UNKNOWN in (one.concurrency, other.concurrency):
        return True
    writers = [call for call in (one, other) if call.writes or call.concurrency is PATH]
    if any(not call.paths for call in writers):
        return True
    return bool(writers) and any(overlap(a, b) for a in one.paths for b in other.paths)


@given(batches())
def test_groups_keep_the_order_and_lose_no_call(calls: list[Planned]) -> None:
    assert [call for group in plan(calls).groups for call in group] == [call.call for call in calls]


@given(batches())
def test_no_two_calls_of_a_group_disturb_each_other(calls: list[Planned]) -> None:
    for group in plan(calls).groups:
        members = [calls[int(call)] for call in group]
        assert 1 <= len(members) <= MAX_WIDTH
        assert not any(disturb(a, b) for i, a in enumerate(members) for b in members[:i])


@given(batches())
def test_every_group_is_as_long_as_it_can_be(calls: list[Planned]) -> None:
    for group, following in pairwise(plan(calls).groups):
        first = calls[int(following[0])]
        assert len(group) == MAX_WIDTH or any(disturb(calls[int(call)], first) for call in group)


@given(batches())
def test_the_same_batch_is_always_planned_the_same_way(calls: list[Planned]) -> None:
    assert plan(calls) == plan(list(calls))


@given(names, names)
def test_overlap_is_symmetric_and_holds_for_a_path_and_its_directory(one: str, other: str) -> None:
    assert overlap(one, other) == overlap(other, one)
    assert overlap(one, one)
    assert overlap(one, one.rstrip("/") + "/below")
