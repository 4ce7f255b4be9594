"""Commands: what they get, what they leave, and how they end."""

import asyncio
import os
import time

import psutil
import pytest

from agents.tools import session
from agents.tools.captured import Captured
from tests.agents.tools.conftest import Bench, carriers

# Ignores TERM, leaves a grandchild that keeps the output open, and waits in a pipeline.
STUBBORN = "echo begun; trap '' TERM; (sleep 600 &); sleep 600 | cat"
# Leaves group and session, twice forked, so that only its environment tells whose it is.
ESCAPED = "setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 & echo started"


async def until(condition: object, within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "the state did not come"
        await asyncio.sleep(0.02)


async def test_output_of_both_streams_and_the_exit_code_are_told(bench: Bench) -> None:
    output = await bench.call("run_command", command="echo out; echo err >&2; exit 3")
    assert output.text == "out\nerr\n[exit code 3]"
    assert output.is_error


async def test_the_command_runs_in_the_workspace_with_a_clean_environment(
    bench: Bench, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "never")
    monkeypatch.setenv("DATABASE_URL", "never")
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    text = (await bench.call("run_command", context, command="pwd; env")).text
    assert text.startswith(str(bench.path) + "\n")
    assert "never" not in text
    assert f"PILOTHOUSE_WORKER={mark}\n" in text
    assert f"PILOTHOUSE_CALL={context.call}\n" in text
    assert f"PILOTHOUSE_RUN={context.run}\n" in text


@pytest.mark.case("A2-03")
async def test_a_timeout_ends_the_whole_session_and_keeps_the_partial_output(bench: Bench, mark: str) -> None:
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    began = time.monotonic()
    output = await bench.call("run_command", context, command=STUBBORN, timeout=0.5)
    assert time.monotonic() - began < 0.5 + 1.0 + 1.5
    assert output.status == "timeout"
    assert output.text.startswith("begun\n")
    assert "killed" in output.text
    assert carriers(mark) == []
    assert context.reports[0].processes >= 3
    assert context.reports[0].left == 0


@pytest.mark.case("A2-03")
async def test_a_cancel_ends_the_whole_session_too_and_goes_on(bench: Bench, mark: str) -> None:
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    task = asyncio.create_task(bench.call("run_command", context, command=STUBBORN))
    await until(lambda: len(carriers(mark)) >= 3)
    task.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 2.5
    assert carriers(mark) == []
    assert context.reports[0].left == 0


DAEMON = """echo begun; python3 -c "
import os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
"; sleep 600"""


@pytest.mark.case("A2-03")
@pytest.mark.parametrize(
    "command",
    [
        DAEMON,
        "echo begun; trap 'setsid sleep 600 &' TERM; while :; do sleep 0.05; done",
        "echo begun; exec >&- 2>&-; sleep 600",
        "for n in 1 2 3 4 5 6 7 8 9; do setsid sh -c \"trap '' TERM; sleep 600\" & done; echo begun; sleep 600",
    ],
)
async def test_no_way_out_of_the_group_is_a_way_out_of_the_call(bench: Bench, mark: str, command: str) -> None:
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    output = await bench.call("run_command", context, command=command, timeout=1.0)
    assert output.status == "timeout"
    assert output.text.startswith("begun\n")
    assert carriers(mark) == []
    assert context.reports[0].left == 0


async def test_a_child_that_shed_its_mark_is_found_by_its_parents(bench: Bench) -> None:
    command = "env -i setsid sh -c \"trap '' TERM; echo \\$\\$ > pid; sleep 600\" & sleep 600"
    task = asyncio.create_task(bench.call("run_command", command=command))
    await until(lambda: (bench.path / "pid").exists() and (bench.path / "pid").read_text())
    pid = int((bench.path / "pid").read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("output", ["", ">/dev/null 2>&1 </dev/null"])
async def test_a_daemon_that_shed_mark_session_and_parents_is_ended_with_its_command(bench: Bench, output: str) -> None:
    daemon = "sh -c 'echo $$ > pid; exec sleep 600'"
    command = f"(env -i /usr/bin/setsid {daemon} {output} &); while [ ! -s pid ]; do sleep 0.01; done"
    told = await bench.call("run_command", command=command)
    pid = int((bench.path / "pid").read_text())
    assert "left running in the background were ended" in told.text
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def test_pressing_cancel_again_does_not_cut_the_clean_up_short(bench: Bench, mark: str) -> None:
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    task = asyncio.create_task(bench.call("run_command", context, command=STUBBORN))
    await until(lambda: len(carriers(mark)) >= 3)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.05)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert carriers(mark) == []


async def test_a_process_that_heeds_term_ends_at_once(bench: Bench, mark: str) -> None:
    task = asyncio.create_task(
        bench.call("run_command", bench.context(environment={"PILOTHOUSE_WORKER": mark}), command="exec sleep 600")
    )
    await until(lambda: carriers(mark))
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 0.8


@pytest.mark.case("A2-03")
@pytest.mark.parametrize(
    "command", [ESCAPED, "nohup sleep 600 & echo started", "(set -m; sleep 600 & ) ; echo started"]
)
async def test_what_a_command_leaves_in_the_background_ends_with_it(bench: Bench, mark: str, command: str) -> None:
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    began = time.monotonic()
    output = await bench.call("run_command", context, command=command)
    assert time.monotonic() - began < 3
    assert "started\n" in output.text
    assert "exit code 0" in output.text
    assert "left running in the background were ended" in output.text
    assert carriers(mark) == []


async def test_a_stopped_process_is_ended_as_well(bench: Bench, mark: str) -> None:
    context = bench.context(environment={"PILOTHOUSE_WORKER": mark})
    output = await bench.call("run_command", context, command="kill -STOP $$", timeout=0.3)
    assert output.status == "timeout"
    assert carriers(mark) == []


@pytest.mark.case("A2-05")
@pytest.mark.parametrize(
    ("command", "ending"),
    [
        ("cat", "[exit code 0]"),
        ("python3 -i", "[exit code 0]"),
        ("read x", "[exit code 1]"),
        ("printf 'Proceed? [y/N] '; read answer || exit 7", "[exit code 7]"),
        ("read x < /dev/tty", "[exit code"),
        ("tty", "[exit code 1]"),
    ],
)
async def test_whoever_waits_for_input_gets_none_and_ends(bench: Bench, command: str, ending: str) -> None:
    began = time.monotonic()
    output = await bench.call("run_command", command=command)
    assert time.monotonic() - began < 3
    assert ending in output.text
    assert output.status is None


async def test_a_flood_is_cut_to_head_and_tail_and_its_size_told(bench: Bench) -> None:
    output = await bench.call(
        "run_command", command="echo FIRST; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo LAST"
    )
    assert output.text.startswith("FIRST\n")
    assert output.text.rstrip().endswith("[exit code 0; 20000012 bytes of output in all]")
    assert "LAST" in output.text
    assert output.whole is not None
    assert len(output.whole) < session.OUTPUT_CAP + 1000


async def test_a_flood_without_end_is_stopped_in_time(bench: Bench) -> None:
    began = time.monotonic()
    output = await bench.call("run_command", command="yes", timeout=0.5)
    assert time.monotonic() - began < 4
    assert output.status == "timeout"


async def test_a_character_may_come_in_pieces(bench: Bench) -> None:
    output = await bench.call("run_command", command=r"printf '\360\237'; sleep 0.1; printf '\230\200\n'")
    assert output.text == "😀\n[exit code 0]"


@pytest.mark.case("A2-01")
async def test_bytes_that_are_no_text_still_make_a_result(bench: Bench) -> None:
    output = await bench.call("run_command", command=r"printf 'W\000s\000l\000 \377\n'")
    assert output.text == "W\x00s\x00l\x00 �\n[exit code 0]"


async def test_a_death_by_signal_is_named(bench: Bench) -> None:
    assert "[killed by signal SIGSEGV]" in (await bench.call("run_command", command="kill -SEGV $$")).text


async def test_a_dry_run_only_says_what_it_would_run(bench: Bench) -> None:
    output = await bench.call("run_command", bench.context(dry_run=True), command="touch made")
    assert output.status == "dry_run"
    assert "touch made" in output.text
    assert os.listdir(bench.path) == []


@pytest.mark.parametrize("command", ["echo a\x00b", "echo \ud83d", "echo " + "x" * 3_000_000])
async def test_a_command_that_cannot_start_says_what_to_do(bench: Bench, command: str) -> None:
    with pytest.raises(Exception, match="could not be started"):
        await bench.call("run_command", command=command)


def test_captured_output_keeps_both_ends_and_no_broken_character() -> None:
    captured = Captured(100)
    for _ in range(100):
        captured.add("é".encode() * 7)
    text = captured.text()
    assert "�" not in text
    assert "bytes left out" in text
    assert captured.total == 1400
