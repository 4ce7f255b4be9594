"""`python -m agents`: one run (`run`), scripted models (`drill`), judging errors (`classify`) and calls (`judge`)."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.engine.alone import Setting
    from agents.engine.outcome import Ended
    from agents.events import Event
    from agents.ports import ChatModel
    from agents.spec import Limits, WorkspaceSpec
    from agents.tools.registry import Registry
    from agents.tools.workspace import Closed

# Everything heavy is imported by the command that needs it: `--help` and a typing error answer at once.

EXIT_CODES = {"completed": 0, "exhausted": 3, "tripped": 4, "interrupted": 5, "failed": 6, "lost": 7}
USAGE_ERROR = 2
NOBODY = "Nobody is here to answer (the input has ended). Decide yourself, and say how you decided."


def parser() -> argparse.ArgumentParser:
    """The command line. Limits and the provider may also come from the environment."""
    top = argparse.ArgumentParser(prog="python -m agents", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="one run, without a database", description="Exit codes: " + _codes())
    run.add_argument("task")
    run.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="what precedes /chat/completions")
    run.add_argument("--model", default=os.environ.get("MODEL"))
    run.add_argument(
        "--provider", metavar="NAME", default="openai", help="how it is spoken to; by default as the host is"
    )
    run.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the key for --base-url")
    run.add_argument("--tools", metavar="A,B", help="only these tools, in this order; '' for none")
    run.add_argument(
        "--workspace",
        metavar="DIR",
        help="a git repository (used by a worktree) or a plain directory (in place)",
    )
    run.add_argument("--branch", metavar="NAME", help="the worktree's branch, by default agent/<run>")
    run.add_argument(
        "--policy", metavar="NAME|FILE", default="default", help="a shipped policy, or a TOML or JSON file"
    )
    for name, meaning in _LIMITS.items():
        run.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=meaning)
    run.add_argument("--dry-run", action="store_true", help="tools say what they would do and do nothing")
    run.add_argument("--json", action="store_true", help="events as JSON lines instead of text")
    drill = commands.add_parser("drill", help="play scripted models over real HTTP")
    drill.add_argument("scenario", nargs="?", help="by default all that have a kind; invoice-timeout is nine of them")
    drill.add_argument("--runs", type=int, default=1, metavar="N")
    drill.add_argument("--guard", default="off", help="off, ladder, ladder-keyed, strict, default, or all of them")
    drill.add_argument("--cap", type=int, default=40, metavar="N", help="tool steps that end a run; 0: none")
    drill.add_argument("--json", action="store_true", help="one JSON object a line instead of a table")
    commands.add_parser("classify", help="judge provider errors: JSON lines on standard input, JSON lines out")
    judge = commands.add_parser(
        "judge", help="judge recorded call sequences: JSON lines on standard input, JSON lines out"
    )
    judge.add_argument(
        "--policy", metavar="NAME|FILE", default="default", help="a shipped policy, or a TOML or JSON file"
    )
    return top


_LIMITS = {
    "max_turns": "model calls with their tools",
    "max_steps": "tool calls",
    "max_tokens": "tokens of all model calls",
    "max_cost": "US dollars",
    "max_seconds": "wall clock",
}


def _codes() -> str:
    return ", ".join(f"{code} {status}" for status, code in EXIT_CODES.items()) + f", {USAGE_ERROR} wrong usage."


def main(argv: Sequence[str] | None = None) -> int:
    from agents.errors import AgentError

    options = parser().parse_args(argv)
    try:
        return _COMMANDS[options.command](options)
    except AgentError as error:
        print(f"{error.kind}: {error.message}", file=sys.stderr)
        return USAGE_ERROR


# --- run ---------------------------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    import asyncio

    from agents import providers
    from agents.engine.alone import Setting
    from agents.errors import ConfigError
    from agents.ids import new_id
    from agents.lines import policy_body, policy_named
    from agents.spec import DEFAULT_PROMPT, ModelSpec
    from agents.tools import workspace

    if not options.base_url or not options.model:
        raise ConfigError(
            "no_model", "Say which model: --base-url and --model, or OPENAI_BASE_URL and MODEL in the environment."
        )
    spec = ModelSpec(model=options.model, base_url=options.base_url, provider=options.provider)
    stronger = policy_named(options.policy).escalate_to  # what is wrong with it is told before anything is made
    if stronger not in (None, options.model):
        what = f"escalate.model is {stronger!r}; a lone run has {options.model} alone. Leave escalate out."
        raise ConfigError("unknown_model", what)
    body, policy = policy_body(options.policy)
    key, limits, tools, run = _key(options), _limits(options, body), _tools(options.tools), new_id()
    if not options.task.strip():
        raise ConfigError("empty_task", "The task is empty; say what is to be done.")
    model = providers.connect(spec, key)
    place = _place(options, run)
    prepared = workspace.prepare(place, run)
    print(f"workspace: {prepared.path}" + (f" ({prepared.note})" if prepared.note else ""), file=sys.stderr)
    setting = Setting(
        run=run,
        task=options.task,
        model=spec,
        prompt=DEFAULT_PROMPT,
        tools=tools,
        workspace=prepared.path,
        place=place,
        note=prepared.note,
        limits=limits,
        policy=policy,
        policy_body=body,
        dry_run=options.dry_run,
    )
    try:
        return asyncio.run(_drive(setting, model, options.json))
    finally:
        _tell(workspace.close(place, run))


def _tools(given: str | None) -> "Registry":
    from agents.errors import ConfigError
    from agents.tools.registry import Registry, default_tools

    tools = Registry(default_tools())
    if given is None:
        return tools
    wanted = [name.strip() for name in given.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in tools.names]:
        known = ", ".join(tools.names)
        raise ConfigError("unknown_tool", f"There is no tool {', '.join(unknown)}; there are {known}.")
    return tools.only(wanted)


def _limits(options: argparse.Namespace, policy: "Mapping[str, Any]") -> "Limits":
    """The tightest of command line, environment and policy."""
    from agents.policy.limits import limits_from, of_policy, tightest

    environment = {name: os.environ.get(f"AGENT_{name.upper()}") or None for name in _LIMITS}
    return tightest(
        limits_from({name: getattr(options, name) for name in _LIMITS}, "request"),
        limits_from(environment, "environment"),
        of_policy(policy),
    )


def _place(options: argparse.Namespace, run: str) -> "WorkspaceSpec":
    """Where to work: a worktree of the given repository, the given directory, or a fresh one, which stays."""
    import tempfile

    from agents.errors import ConfigError
    from agents.spec import WorkspaceKind, WorkspaceSpec
    from agents.tools.workspace import repository_of

    if options.workspace is None:
        return WorkspaceSpec(path=tempfile.mkdtemp(prefix="pilothouse-run-"), kind=WorkspaceKind.FRESH)
    path = str(Path(options.workspace).expanduser().resolve())
    if repository_of(path) != path:
        if options.branch:
            raise ConfigError("bad_branch", f"{path} is no git repository: it has no branches. Leave --branch out.")
        return WorkspaceSpec(path=path, kind=WorkspaceKind.DIRECTORY)
    tree = str(Path(tempfile.mkdtemp(prefix="pilothouse-run-")) / "worktree")
    branch = options.branch or f"agent/{run}"
    return WorkspaceSpec(path=tree, kind=WorkspaceKind.WORKTREE, branch=branch, source=path)


def _tell(closed: "Closed") -> None:
    """Where the work is, when it is on a branch."""
    if closed.commit:
        print(f"work: branch {closed.branch} at {closed.commit[:12]}", file=sys.stderr)
    if closed.note:
        print(f"work: {closed.note}", file=sys.stderr)


def _key(options: argparse.Namespace) -> str | None:
    """The key for this base URL. OPENAI_API_KEY goes to OPENAI_BASE_URL (by default OpenAI's own) and nowhere else."""
    from agents.errors import ConfigError

    if options.api_key_env:
        if not os.environ.get(options.api_key_env):
            raise ConfigError("no_key", f"The environment variable {options.api_key_env} is not set.")
        return os.environ[options.api_key_env]
    home = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    return os.environ.get("OPENAI_API_KEY") if options.base_url.rstrip("/") == home.rstrip("/") else None


async def _drive(setting: "Setting", model: "ChatModel", as_json: bool) -> int:
    from agents import providers
    from agents.engine.alone import LoneRun

    printer = _printer(as_json)

    def watch(event: "Event", body: bytes) -> None:
        try:
            printer(event, body)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            run.interrupt(by="system", reason="the reader of the output has gone")

    run = LoneRun(setting, model, watch, _ask_terminal)
    undo = _on_signals(lambda: run.interrupt(by="operator", reason="Ctrl-C"), run.spec.id)
    try:
        ended = await run.drive()
    finally:
        undo()
        await providers.close()
    return _exit_code(ended)


def _exit_code(ended: "Ended") -> int:
    return EXIT_CODES[ended.status.value] if ended.status else EXIT_CODES["lost"]


def _printer(as_json: bool) -> "Callable[[Event, bytes], None]":
    from agents.engine.console import line

    def print_json(event: "Event", body: bytes) -> None:
        sys.stdout.buffer.write(body + b"\n")
        sys.stdout.buffer.flush()

    def print_line(event: "Event", body: bytes) -> None:
        if text := line(event, event.root):
            print(text, flush=True)

    return print_json if as_json else print_line


def _on_signals(interrupt: Callable[[], None], run: str) -> Callable[[], None]:
    """The first Ctrl-C or SIGTERM interrupts in order; the second ends processes and program at once."""
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    asked = False

    def act(number: int) -> None:
        nonlocal asked
        if asked:
            _end_hard(run, 128 + number)
        asked = True
        print("interrupting; once more ends it hard, without waiting", file=sys.stderr)
        interrupt()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, act, number)

    def undo() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    return undo


def _end_hard(run: str, code: int) -> None:
    from agents.tools.processes import end_marked

    # Sub-agents carry the same worker mark, so this finds the tools of the whole tree.
    end_marked("PILOTHOUSE_WORKER", run, 0.0)
    sys.stdout.flush()
    os._exit(code)


async def _ask_terminal(question: str, choices: Sequence[str]) -> tuple[str, str]:
    """One line of standard input. A thread reads it: a terminal cannot be awaited, and Ctrl-C must work meanwhile."""
    import asyncio
    import threading

    from agents.engine.console import plain

    print(plain(f"? {question}" + "".join(f"\n  {n}. {c}" for n, c in enumerate(choices, 1))), file=sys.stderr)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def tell(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        text = sys.stdin.readline()
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, text)

    threading.Thread(target=read, daemon=True, name="answer").start()
    text = await answer
    if not text:
        return NOBODY, "system"
    chosen = text.strip()
    number = int(chosen) if chosen.isdecimal() else 0
    return (choices[number - 1] if 0 < number <= len(choices) else chosen), "operator"


# --- drill -------------------------------------------------------------------------------------------------------


def _drill(options: argparse.Namespace) -> int:
    from agents.drill.guards import guards
    from agents.drill.play import play
    from agents.drill.scenarios import SCENARIOS, chosen
    from agents.drill.table import lines
    from agents.errors import ConfigError

    under = guards(options.guard)
    scenarios = chosen(options.scenario)
    if not scenarios:
        known = ", ".join(SCENARIOS)
        raise ConfigError("unknown_scenario", f"There is no scenario {options.scenario}; there are {known}.")
    if options.runs < 1 or options.cap < 0:
        raise ConfigError("bad_runs", "--runs must be 1 or more, --cap 0 (none) or more.")
    rows = play(scenarios, guards=under, runs=options.runs, cap=options.cap or None)
    for line in lines(rows, as_json=options.json):
        print(line)
    return 0


# --- classify, judge -------------------------------------------------------------------------------------------


def _lines(options: argparse.Namespace) -> int:
    from agents.lines import answer_all, answerer

    return 0 if answer_all(sys.stdin.buffer, print, answerer(options)) else USAGE_ERROR


_COMMANDS = {"run": _run, "drill": _drill, "classify": _lines, "judge": _lines}

if __name__ == "__main__":
    sys.exit(main())
