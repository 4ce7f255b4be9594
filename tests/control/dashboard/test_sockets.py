"""The sockets of a real web process: nothing lost, nothing twice, nobody let in who should not be, nobody slowed."""

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallStarted, ContextCompressed, TurnStarted
from control.accounts.models import Role, User
from control.runs import bus
from control.runs.models import Run
from tests.control.dashboard.conftest import Follower, Web
from tests.control.records import batch, drafts, make_run, write
from tests.control.runs.processes import until

pytestmark = pytest.mark.django_db(transaction=True)


def fill(run: Run, many: int, size: int = 20) -> None:
    """Append this many events in one commit each of up to 100."""
    from control.runs import log

    body = ContextCompressed(before_tokens=2, after_tokens=1, summary="x" * size, from_seq=1, to_seq=1)
    for start in range(0, many, 100):
        log.append([batch(run, *drafts(*[body] * min(100, many - start)))])


def cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"sessionid={client.cookies['sessionid'].value}"


def refused(web: Web, path: str, origin: str | None = None, **headers: str) -> int:
    with pytest.raises(InvalidStatus) as caught:
        web.open(path, origin=origin, **headers)
    return caught.value.response.status_code


# --- the cursor ------------------------------------------------------------------------------------------------------


def test_a_socket_says_hello_and_sends_the_log_from_its_cursor(web: Web):
    run = make_run()
    fill(run, 9)
    with web.follow(f"/ws/runs/{run.pk}?after=4&format=json") as follower:
        assert follower.hello == {"type": "hello", "last_seq": 10, "epoch": 1}
        assert follower.seqs(10) == [5, 6, 7, 8, 9, 10]
        write(run, TurnStarted(), turn=1)
        assert follower.seqs(11) == [11]


def test_twenty_drops_lose_nothing_and_repeat_nothing(web: Web):
    run = make_run()
    token = web.token()
    done = threading.Event()

    def work() -> None:
        from django.db import connection

        for _ in range(400):
            write(run, TurnStarted(), turn=1)
            time.sleep(0.002)
        connection.close()
        done.set()

    writer = threading.Thread(target=work)
    writer.start()
    seen: list[int] = []
    drops = 0
    while drops < 20 or not done.is_set() or seen[-1] < 401:
        after = seen[-1] if seen else 0
        with closing(
            web.open(f"/ws/runs/{run.pk}?after={after}&format=json", Authorization=f"Bearer {token}")
        ) as socket:
            follower = Follower(socket)
            want = 401 if drops >= 20 else min(401, after + 8)
            while not seen or seen[-1] < want:
                frame = follower.next_of("events")
                seen += [event["seq"] for event in frame["events"]]
                follower.ack(seen[-1])
            # No goodbye: the line is cut.
            socket.socket.close()
        drops += 1
    writer.join()
    assert seen == list(range(1, 402))


def test_events_come_without_the_bus_too(web: Web, hinted: list[tuple[str, bytes]]):
    run = make_run()
    with web.follow(f"/ws/runs/{run.pk}?after=1&format=json") as follower:
        fill(run, 3)
        assert follower.seqs(4) == [2, 3, 4]


def test_a_cursor_ahead_of_the_log_is_told_and_closed(web: Web):
    run = make_run()
    with closing(web.open(f"/ws/runs/{run.pk}?after=99&format=json", Authorization=f"Bearer {web.token()}")) as socket:
        assert '"cursor_ahead"' in str(socket.recv(timeout=5))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=5)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4400


# --- the gate --------------------------------------------------------------------------------------------------------


def test_strangers_are_refused_before_the_handshake(web: Web, person: Callable[..., User]):
    run = make_run()
    path = f"/ws/runs/{run.pk}?after=0"
    signed_in = cookie(person(Role.VIEWER))
    assert refused(web, path) == 403
    assert refused(web, path, web.base) == 403
    assert refused(web, path, None, Cookie=signed_in) == 403
    for wrong in (
        "http://127.0.0.1:1",
        f"https://127.0.0.1:{web.port}",
        f"http://evil.example:{web.port}",
        f"http://127.0.0.1.evil.example:{web.port}",
        "null",
    ):
        assert refused(web, path, wrong, Cookie=signed_in) == 403
        assert refused(web, path, wrong, Authorization=f"Bearer {web.token()}") == 403
    assert refused(web, path, None, Authorization="Bearer ph_wrong") == 403
    assert refused(web, f"{path}&token={web.token()}") == 403
    assert refused(web, f"/ws/runs/{new_id()}?after=0", None, Authorization=f"Bearer {web.token()}") == 403
    assert refused(web, "/ws/elsewhere", None, Authorization=f"Bearer {web.token()}") == 403
    assert refused(web, f"{path}&format=xml", None, Authorization=f"Bearer {web.token()}") == 403
    assert refused(web, f"/ws/runs/{run.pk}?after=x", None, Authorization=f"Bearer {web.token()}") == 403


def test_a_person_from_this_origin_and_a_token_from_anywhere_may_look(web: Web, person: Callable[..., User]):
    run = make_run()
    with closing(web.open(f"/ws/runs/{run.pk}", origin=web.base, Cookie=cookie(person(Role.VIEWER)))) as socket:
        assert Follower(socket).hello["last_seq"] == 1
    with web.follow(f"/ws/runs/{run.pk}?after=0&format=json") as follower:
        assert follower.seqs(1) == [1]


def test_a_socket_ends_with_its_session(web: Web, person: Callable[..., User]):
    run = make_run()
    user = person(Role.VIEWER)
    with closing(web.open(f"/ws/runs/{run.pk}", origin=web.base, Cookie=cookie(user))) as socket:
        Follower(socket)
        User.objects.filter(pk=user.pk).update(is_active=False)
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                socket.recv(timeout=10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401


def test_a_socket_takes_no_commands_and_no_large_frames(web: Web):
    run = make_run()
    with web.follow(f"/ws/runs/{run.pk}?after=0&format=json") as follower:
        follower.socket.send('{"type":"interrupt"}')
        follower.socket.send("no json")
        assert follower.seqs(1) == [1]
        follower.socket.send("x" * 5000)
        with pytest.raises(ConnectionClosed):
            while True:
                follower.next()
    assert Run.objects.get(pk=run.pk).status == "running"


# --- flow ------------------------------------------------------------------------------------------------------------


def test_a_silent_reader_gets_one_resync_and_goes_on_where_it_acknowledges(web: Web):
    run = make_run()
    fill(run, 2_500)
    with web.follow(f"/ws/runs/{run.pk}?after=0&format=json") as follower:
        seen: list[int] = []
        while (frame := follower.next())["type"] != "resync":
            if frame["type"] == "events":
                seen += [event["seq"] for event in frame["events"]]
        assert seen == list(range(1, seen[-1] + 1)) and seen[-1] <= 1_000
        assert frame["after"] == seen[-1]
        with pytest.raises(TimeoutError):
            follower.next(within=1.5)
        follower.ack(seen[-1])
        assert follower.seqs(2_501) == list(range(seen[-1] + 1, 2_502))


def test_a_megabyte_in_flight_is_enough(web: Web):
    run = make_run()
    fill(run, 60, size=60_000)
    with web.follow(f"/ws/runs/{run.pk}?after=0&format=json") as follower:
        size = 0
        while True:
            raw = follower.socket.recv(timeout=10)
            if '"resync"' in str(raw[:40]):
                break
            size += len(raw)
        assert size <= 1_300_000
        follower.ack(Run.objects.get(pk=run.pk).last_seq)


def test_a_reader_who_never_reads_does_not_hold_up_another(web: Web):
    run = make_run()
    with (
        web.follow(f"/ws/runs/{run.pk}?after=1&format=json") as deaf,
        web.follow(f"/ws/runs/{run.pk}?after=1&format=html") as deaf_too,
        web.follow(f"/ws/runs/{run.pk}?after=1&format=json") as awake,
    ):
        fill(run, 1_800, size=2_000)
        began = time.monotonic()
        assert awake.seqs(1_801) == list(range(2, 1_802))
        assert time.monotonic() - began < 10
        assert deaf.hello and deaf_too.hello


def test_heartbeats_carry_the_newest_number(web: Web):
    run = make_run()
    with web.follow(f"/ws/runs/{run.pk}?after=1&format=json") as follower:
        beat = follower.next_of("heartbeat", within=15)
        assert beat["last_seq"] == 1 and beat["ts"].endswith("Z")


# --- live text and frames ---------------------------------------------------------------------------------------------


def test_live_text_reaches_those_who_look_and_those_who_come_later(web: Web):
    run = make_run()
    call = new_id()
    with web.follow(f"/ws/runs/{run.pk}?after=0&format=json") as follower:
        write(run, CallStarted(operation="chat", name="m"), turn=1, call=call)
        assert follower.seqs(2) == [1, 2]
        head = f'{{"run":"{run.pk}","type":"delta","call":"{call}","attempt":1,'
        bus.bus().publish("text", (head + '"offset":0,"text":"One "}').encode())
        bus.bus().publish("text", (head + '"offset":4,"text":"two"}').encode())
        assert follower.next_of("delta")["text"] == "One "
        assert follower.next_of("delta")["offset"] == 4
        with web.follow(f"/ws/runs/{run.pk}?after=2&format=json") as late:
            assert late.next_of("delta")["text"] == "One two"
        bus.bus().publish("text", f'{{"run":"{run.pk}","type":"withdrawn","call":"{call}","attempt":1}}'.encode())
        assert follower.next_of("withdrawn") == {"type": "withdrawn", "call": call, "attempt": 1}


def test_a_page_gets_its_rows_as_patches_and_its_numbers_beside_them(web: Web):
    run = make_run()
    with web.follow(f"/ws/runs/{run.pk}?after=1") as follower:
        call = new_id()
        write(run, TurnStarted(), CallStarted(operation="chat", name="m"), turn=1, call=call)
        seen: dict[str, str] = {}
        while "turn-1" not in seen or "side-stats" not in seen:
            frame = follower.next_of("patches")
            seen |= {patch["id"]: patch["op"] for patch in frame["patches"]}
            if "seq" in frame:
                follower.ack(frame["seq"])
        assert seen["turn-1"] == "append" and seen["side-stats"] == "replace"


def test_a_page_that_was_away_gets_the_difference_in_one_frame(web: Web):
    run = make_run()
    write(run, TurnStarted(), turn=1)
    fill(run, 300)
    with web.follow(f"/ws/runs/{run.pk}?after=2") as follower:
        frame = follower.next_of("patches")
        while "seq" not in frame:
            frame = follower.next_of("patches")
        assert frame["seq"] == 302
        assert len(frame["patches"]) == 300


def test_the_fleet_starts_with_a_snapshot_and_goes_on_row_by_row(web: Web):
    run = make_run(task="first")
    with web.follow("/ws/fleet?format=json") as follower:
        snapshot = follower.next_of("snapshot")
        assert [row["id"] for row in snapshot["runs"]] == [run.pk]
        write(run, TurnStarted(), turn=1)
        row = follower.next_of("run")["run"]
        assert row["id"] == run.pk and row["turns"] == 1
        write(run, kinds.RunCompleted(final="done"))
        until(lambda: follower.next_of("run")["run"]["status"] == "completed", 10)
