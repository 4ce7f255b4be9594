"""A cap of two cents is never passed, by the count of the model's own server, alone, side by side, across processes."""

import os
import signal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from agents.policy.accounts import NOTHING, nano
from control.runs.ledger import book
from control.runs.models import Reservation, Run
from tests.control.runs.ledger.conftest import Till, look
from tests.control.runs.processes import House, answered, events, holder_pid, kinds, reach, row, until
from tests.scripted_server import Response, ask_tools, say, stall

pytestmark = [pytest.mark.chaos]
MakeHouse = Callable[..., House]
CAP = Decimal("0.02")


def settled(run: str) -> None:
    """Wait until nothing is held any more; then the account must say what the model's server has charged."""
    until(lambda: not Reservation.objects.filter(settled_at=None).exists(), what="every reservation is settled")
    account = book.account(f"run:{run}")
    assert account is not None and account.held == NOTHING


def spent(run: str) -> int:
    account = book.account(f"run:{run}")
    assert account is not None
    return account.spent.usd


def begins(request: Any) -> bool:
    return not answered(request)


def with_children(till: Till, number: int, **how: Any) -> Callable[[Any], Response]:
    """The root starts so many sub-agents at once; all of them look around for as long as they may."""

    def script(request: Any) -> Response:
        if "lead" in str(request["messages"][1]) and begins(request):
            calls = [("delegate", {"task": f"part {one}", **how}) for one in range(number)]
            return ask_tools(*calls, used=till.charge(request, 100))
        return look(till, request)

    return script


def test_a_run_alone_stays_within_its_cap(priced_house: MakeHouse, till: Till) -> None:
    house = priced_house(lambda request: look(till, request))
    house.worker()
    run = house.begin(limits={"max_cost": str(CAP)}, policy="off")
    ended = reach(run, "tripped", "failed", "completed")
    assert (ended.status, ended.exit_reason) == ("tripped", "fuse:max_cost")
    settled(run)
    assert CAP * Decimal("0.8") < till.usd <= CAP
    assert spent(run) == nano(till.usd) == nano(ended.cost_usd or 0)
    warned = [event["data"] for event in events(run) if event["kind"] == "verdict.issued"]
    assert [one["rung"] for one in warned if one["rule"] == "max_cost"][:1] == ["observe"]
    assert len([one for one in warned if one["rule"] == "max_cost" and one["rung"] == "observe"]) == 1


@pytest.mark.case("A7-09")
def test_eight_sub_agents_at_once_stay_within_the_cap_of_their_root(priced_house: MakeHouse, till: Till) -> None:
    house = priced_house(with_children(till, 8))
    house.worker()
    run = house.begin("lead", limits={"max_cost": str(CAP)}, policy="off")
    reach(run, "tripped", "failed", "completed", within=60)
    tree = Run.objects.filter(root=run)
    assert tree.count() == 9
    settled(run)
    assert CAP * Decimal("0.7") < till.usd <= CAP
    assert spent(run) == nano(till.usd)


@pytest.mark.case("A7-09")
def test_sub_agents_on_three_workers_stay_within_the_cap_of_their_root(priced_house: MakeHouse, till: Till) -> None:
    house = priced_house(with_children(till, 8, detached=True), WORKER_CAPACITY="3")
    for _ in range(3):
        house.worker()
    house.desk()
    run = house.begin("lead", limits={"max_cost": str(CAP)}, policy="off")
    until(lambda: Run.objects.filter(root=run).count() == 9, what="all are started")
    for one in Run.objects.filter(root=run):
        reach(one.pk, "tripped", "failed", "completed", within=60)
    settled(run)
    assert len(set(Run.objects.filter(root=run).values_list("worker", flat=True))) > 1
    assert CAP * Decimal("0.7") < till.usd <= CAP
    assert spent(run) == nano(till.usd)


@pytest.mark.case("A7-09")
def test_what_a_killed_worker_held_counts_until_the_log_or_caution_settles_it(
    priced_house: MakeHouse, till: Till
) -> None:
    def script(request: Any) -> Response:
        used = till.charge(request)
        if len(till.requests) == 2:
            return say("half", after=[stall()], used=used)
        return ask_tools(("list_files", {"path": "."}), used=used)

    house = priced_house(script)
    house.worker()
    run = house.begin(limits={"max_cost": str(CAP)}, policy="off")
    until(lambda: len(till.requests) == 2, what="the second call is under way")
    held = until(lambda: Reservation.objects.filter(run_id=run, settled_at=None).first())
    os.kill(holder_pid(run), signal.SIGKILL)
    house.desk()
    house.worker()
    until(lambda: Reservation.objects.get(pk=held.pk).settled_at, what="the dead worker's reservation is settled")
    held.refresh_from_db()
    assert held.settled_by in ("held", "log") and held.usd_spent == held.usd
    assert reach(run, "tripped", "failed", within=60).exit_reason == "fuse:max_cost"
    settled(run)
    assert till.usd <= CAP and spent(run) >= nano(till.usd)


def test_a_reservation_outlives_its_lease_time_while_the_run_is_held(priced_house: MakeHouse, till: Till) -> None:
    going: list[Any] = []

    def script(request: Any) -> Response:
        going.append(request)
        return say("half", after=[stall()], used=till.charge(request))

    house = priced_house(script)
    house.worker()
    house.desk()
    run = house.begin(limits={"max_cost": str(CAP)}, policy="off")
    until(lambda: going, what="the call is under way")
    first = row(run).lease_until
    assert first is not None
    until(lambda: (row(run).lease_until or first) > first and row(run).epoch == 1, what="the lease is renewed")
    renewed = row(run).lease_until
    until(lambda: (row(run).lease_until or renewed) > renewed, what="and renewed again")
    assert Reservation.objects.get(run_id=run).settled_at is None
    os.kill(holder_pid(run), signal.SIGKILL)
    until(
        lambda: not Reservation.objects.filter(run_id=run, epoch=1, settled_at=None).exists(), what="then it is settled"
    )


def test_a_cost_reported_above_the_price_table_counts_and_the_next_call_is_refused(
    priced_house: MakeHouse, till: Till
) -> None:
    def script(request: Any) -> Response:
        return ask_tools(("list_files", {"path": "."}), used=till.charge(request) | {"cost": 0.0185})

    house = priced_house(script)
    house.worker()
    run = house.begin(limits={"max_cost": str(CAP)}, policy="off")
    ended = reach(run, "tripped", "failed")
    assert (ended.exit_reason, len(till.requests)) == ("fuse:max_cost", 1)
    settled(run)
    assert spent(run) == nano(Decimal("0.0185"))


def test_without_a_price_the_tokens_hold_and_the_log_says_so(priced_house: MakeHouse, till: Till) -> None:
    from control.runs.starts import StartRefused

    house = priced_house(lambda request: look(till, request))
    (house.root / "models.toml").write_text('[[model]]\nname = "other"\nwindow = 100000\n')
    with pytest.raises(StartRefused, match="price"):
        house.begin(limits={"max_cost": "0.02"}, policy="off")
    house.worker()
    policy = {"unpriced": "tokens_only"}
    run = house.begin(limits={"max_cost": "0.02", "max_tokens": 20_000}, policy=policy)
    ended = reach(run, "tripped", "failed")
    assert ended.exit_reason == "fuse:max_tokens" and ended.input_tokens + ended.output_tokens <= 20_000
    loud = [event["data"] for event in events(run) if event["kind"] == "verdict.issued"]
    assert [one["explanation"] for one in loud if one["rule"] == "unpriced"] == [
        "No price is known for m: no limit of money holds for this run, only that of tokens"
    ]


def test_a_call_that_waits_for_others_goes_on_when_the_limit_is_raised(priced_house: MakeHouse, till: Till) -> None:
    from agents.commands import CommandKind
    from control.runs import inbox

    def script(request: Any) -> Response:
        if "lead" in str(request["messages"][1]) and begins(request):
            calls = [("delegate", {"task": f"part {one}"}) for one in range(3)]
            return ask_tools(*calls, used=till.charge(request, 100))
        return say("half", after=[stall()], used=till.charge(request))

    house = priced_house(script)
    house.worker()
    run = house.begin("lead", limits={"max_cost": "0.016"}, policy="off")
    waiting = until(lambda: Run.objects.filter(root=run, status="waiting").first(), what="a sub-agent waits")
    assert "Waits for other model calls to end" in str([e["data"] for e in events(waiting.pk)])
    before = len(till.requests)
    inbox.issue(run_id=run, kind=CommandKind.RAISE, by="ann", reason="more", args={"limits": {"max_cost": "0.10"}})
    until(lambda: len(till.requests) == 4, what="all of them are at it")
    assert before < 4 and "fuse.raised" in kinds(run)
    inbox.issue(run_id=run, kind=CommandKind.INTERRUPT, by="ann", reason="enough")
    reach(run, "interrupted")
    settled(run)
    assert spent(run) >= nano(till.usd) // 2
