"""The live feed: from the call of the EventSink in a worker to the frame in a viewer's hands."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import psutil

from tests import children
from tests.bench.harness import PYTHON, say
from tests.bench.lane import MODES
from tests.bench.stack import Stack, stack

SECONDS = 6.0
CHECKERS = 10


def live() -> None:
    """1,000 events a second of one run to 1, 10 and 100 viewers; a hundred cuts and one that never reads; then pages.

    Compared with the same feed at one viewer, in the same run: what the crowd costs.
    """
    for services, label in MODES:
        with stack(services=services) as console:
            alone = _told(label, "json", 1, watch(console, rate=1000, viewers=1))
            for viewers in (10, 100):
                found = watch(console, rate=1000, viewers=viewers)
                _told(label, "json", viewers, found, alone)
            hard = watch(console, rate=1000, viewers=100, reconnects=100, mute=1, seconds=2 * SECONDS)
            _told(label, "json, 100 cut off, one never reads", 100, hard, alone)
            say(f"{label}: the web process grew by {hard['grown_mb']:.1f} MB meanwhile")
            _told(label, "html", 100, watch(console, rate=200, viewers=100, format="html", checkers=1), alone)


def _told(label: str, what: str, viewers: int, found: dict[str, Any], alone: float | None = None) -> float:
    ratio = "" if alone is None else f", p50 {found['p50'] / alone:.1f} x that of one viewer"
    say(
        f"{label}, {what}, {viewers} viewers, {found['events_per_s']:.0f} events/s: p50 {1000 * found['p50']:.1f} ms, "
        f"p99 {1000 * found['p99']:.1f} ms, max {1000 * found['max']:.0f} ms{ratio}; lost {found['lost']}, doubled "
        f"{found['doubled']}, wrong {found['wrong']}, resyncs {found['resyncs']}, n={found['n']}"
    )
    return float(found["p50"])


def watch(
    console: Stack,
    *,
    rate: int,
    viewers: int,
    seconds: float = SECONDS,
    format: str = "json",
    checkers: int = CHECKERS,
    reconnects: int = 0,
    mute: int = 0,
) -> dict[str, Any]:
    """One trial; what the viewers and the source report, and by how many MB the web process grew."""
    web = web_process(console)
    source = start_subject("source", console.env, rate, seconds)
    run = line_of(source)
    crowd = start_subject("viewers", console.env)
    host, _, port = console.base.removeprefix("http://").partition(":")
    options = {
        "host": host, "port": int(port), "token": console.token, "run": run, "format": format, "viewers": viewers,
        "checkers": checkers, "reconnects": reconnects, "mute": mute, "seconds": seconds,
    }  # fmt: skip
    try:
        tell(crowd, json.dumps(options))
        assert line_of(crowd) == "ready"
        before, began = web.memory_info().rss, sum(web.cpu_times()[:2])
        tell(source, "go")
        told = json.loads(line_of(source))
        tell(crowd, str(told["last_seq"]))
        found = json.loads(line_of(crowd))
        used = sum(web.cpu_times()[:2]) - began
        return {**told, **found, "web_cpu_s": used, "grown_mb": (web.memory_info().rss - before) / 2**20}
    finally:
        for process in (source, crowd):
            process.kill()
            process.wait(10)


def web_process(console: Stack) -> psutil.Process:
    """The child of `up` that serves pages and sockets."""
    family = psutil.Process(console.pid).children(recursive=True)
    return next(process for process in family if "web" in process.cmdline()[:4])


def start_subject(name: str, env: Mapping[str, str], *arguments: object) -> "subprocess.Popen[bytes]":
    command = [PYTHON, "-m", f"tests.bench.subjects.{name}", *map(str, arguments)]
    return children.start(command, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def tell(process: "subprocess.Popen[bytes]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def line_of(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline().decode().strip()
    if not line:
        raise SystemExit(f"{process.args!r} ended without an answer")
    return line
