"""What broke others at their sockets: drops without a trace, leaks after hard cuts, sessions that pile up, foreign
origins, and readers that never read."""

import base64
import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable

import httpx
import psutil
import pytest
from django.db import connection
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from agents.kinds import ContextCompressed, RunCompleted
from control.accounts.models import Role, User
from control.runs import log
from control.runs.models import Run
from tests.control.dashboard.conftest import Web
from tests.control.records import batch, drafts, make_run, write
from tests.control.runs.processes import until

pytestmark = pytest.mark.django_db(transaction=True)


def fill(run: Run, many: int, size: int = 20) -> None:
    body = ContextCompressed(before_tokens=2, after_tokens=1, summary="x" * size, from_seq=1, to_seq=1)
    for start in range(0, many, 100):
        log.append([batch(run, *drafts(*[body] * min(100, many - start)))])


def shake(web: Web, path: str, token: str, *, small: bool = False, headers: str = "") -> socket.socket:
    """A bare socket after its request for an upgrade; `small`: with room for little in its window."""
    bare = socket.socket()
    if small:
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    bare.settimeout(20)
    bare.connect(("127.0.0.1", web.port))
    key = base64.b64encode(os.urandom(16)).decode()
    host = "" if "Host:" in headers else f"Host: 127.0.0.1:{web.port}\r\n"
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    bare.sendall(
        f"GET {path} HTTP/1.1\r\n{host}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        f"Sec-WebSocket-Version: 13\r\n{bearer}{headers}\r\n".encode()
    )
    return bare


def answered(bare: socket.socket) -> int:
    """The status of the answer, read no further than its head."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = bare.recv(1)
        if not piece:
            break
        head += piece
    return int(head.split(b" ", 2)[1])


def cut(bare: socket.socket) -> None:
    """Gone without a word: the other side gets a reset."""
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    bare.close()


def process_of(web: Web) -> psutil.Process:
    return psutil.Process(web.house._processes[0].pid)


def metric(web: Web, name: str) -> float:
    reply = httpx.get(f"{web.base}/metrics", headers={"Authorization": f"Bearer {web.token()}"}, timeout=20)
    samples = [s for f in text_string_to_metric_families(reply.text) for s in f.samples if s.name == name]
    return samples[0].value


def sessions() -> int:
    """Connections to this database, ours among them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


@pytest.mark.case("A5-07")
def test_a_suspended_reader_misses_nothing_and_the_resync_that_it_needed_is_counted(web: Web) -> None:
    run = make_run()
    with web.follow(f"/ws/runs/{run.pk}?after=0&format=json") as asleep:
        fill(run, 1_500)
        write(run, RunCompleted(final="done"))
        until(lambda: metric(web, "pilothouse_web_process_resyncs_total") == 1, 15, "it is told to start again")
        seen: list[int] = []
        kinds: list[str] = []
        while not seen or seen[-1] < 1_502:
            frame = asleep.next_of("events", "resync")
            for event in frame.get("events", []):
                seen.append(event["seq"])
                kinds.append(event["kind"])
            asleep.ack(seen[-1])
        assert seen == list(range(1, 1_503))
        assert kinds[-1] == "run.completed"


@pytest.mark.case("A5-09")
@pytest.mark.postgres
def test_two_thousand_sockets_that_are_cut_leave_nothing_behind(web: Web) -> None:
    run = make_run()
    token = web.token()
    path = f"/ws/runs/{run.pk}?after=0&format=json"
    with web.follow(path) as warm:
        assert warm.seqs(1) == [1]
    process = process_of(web)
    until(lambda: metric(web, "pilothouse_web_process_sockets") == 0, what="the first one has gone")
    files, threads, open_before = process.num_fds(), process.num_threads(), sessions()
    for number in range(2_000):
        bare = shake(web, path, token)
        if number % 4:  # every fourth is cut while the web still thinks about it
            assert answered(bare) == 101
        cut(bare)
    until(lambda: metric(web, "pilothouse_web_process_sockets") == 0, 30, "all have been let go")
    until(lambda: process.num_fds() <= files + 5, 30, "their files are closed")
    # The pool for requests may have grown to its size meanwhile; it does not grow with sockets.
    assert process.num_threads() <= threads + 40
    assert sessions() <= open_before + 40
    with web.follow(path) as after:
        assert after.seqs(1) == [1]
    assert "took too long" not in web.house.output()


@pytest.mark.case("A5-11")
@pytest.mark.postgres
def test_database_sessions_stay_few_however_many_come_go_or_hang_on(web: Web) -> None:
    run = make_run()
    token = web.token()
    path = f"/ws/runs/{run.pk}?after=0&format=json"
    most = 0
    with contextlib.ExitStack() as idle:
        for _ in range(50):
            bare = idle.enter_context(contextlib.closing(shake(web, path, token)))
            assert answered(bare) == 101
        for number in range(500):
            bare = shake(web, path, token)
            assert answered(bare) == 101
            cut(bare)
            if number % 50 == 0:
                most = max(most, sessions())
        for number in range(200):
            bare = socket.create_connection(("127.0.0.1", web.port), 20)
            head = f"Host: 127.0.0.1:{web.port}\r\nAuthorization: Bearer {token}\r\n"
            bare.sendall(f"GET /api/runs HTTP/1.1\r\n{head}\r\n".encode())
            cut(bare)
            if number % 20 == 0:
                most = max(most, sessions())
        until(lambda: httpx.get(f"{web.base}/healthz", timeout=20).status_code == 200, what="it still answers")
        assert max(most, sessions()) < 30


@pytest.mark.case("A5-17")
def test_another_name_for_this_machine_is_no_way_in(web: Web, person: Callable[..., User]) -> None:
    run = make_run()
    signed_in = Client()
    signed_in.force_login(person(Role.OPERATOR))
    session = f"Cookie: sessionid={signed_in.cookies['sessionid'].value}\r\n"
    path = f"/ws/runs/{run.pk}?after=0"
    for headers in (
        f"Host: evil.example:{web.port}\r\nOrigin: http://evil.example:{web.port}\r\n",
        "Host: evil.example\r\nOrigin: http://evil.example\r\n",
        f"Origin: http://127.0.0.1:{web.port + 1}\r\n",
        f"Origin: http://localhost:{web.port + 1}\r\n",
        f"Origin: https://127.0.0.1:{web.port}\r\n",
        f"Origin: http://127.0.0.1:{web.port}.evil.example\r\n",
        "Origin: null\r\n",
        "Origin:\r\n",
        "",
    ):
        with contextlib.closing(shake(web, path, "", headers=headers + session)) as bare:
            assert answered(bare) in (400, 403), headers
    good = f"Origin: http://127.0.0.1:{web.port}\r\n{session}"
    with contextlib.closing(shake(web, path, "", headers=good)) as bare:
        assert answered(bare) == 101
    # The page itself does not answer to the other name either.
    foreign = httpx.get(f"{web.base}/", headers={"Host": "evil.example"})
    assert foreign.status_code == 400


@pytest.mark.case("A5-20")
def test_thirty_readers_that_never_read_cost_little_memory_and_nobody_else_any_time(web: Web) -> None:
    run = make_run()
    token = web.token()
    path = f"/ws/runs/{run.pk}?after=1&format=json"
    process = process_of(web)
    with contextlib.ExitStack() as deaf, web.follow(path) as awake:
        for _ in range(30):
            bare = deaf.enter_context(contextlib.closing(shake(web, path, token, small=True)))
            assert answered(bare) == 101
        before = process.memory_info().rss
        slowest = 0.0
        last = 1
        for _ in range(20):
            fill(run, 400, size=2_000)
            began = time.monotonic()
            last += 400
            assert awake.seqs(last)[-1] == last
            slowest = max(slowest, time.monotonic() - began)
        # Sent to one reader: 16 MB. Unbounded, thirty of them would have made it half a gigabyte.
        grown = process.memory_info().rss - before
        assert grown < 90 * 1024 * 1024, f"{grown / 1e6:.0f} MB"
        assert slowest < 5
