"""The commands: the same verbs, the same refusals, one sentence each."""

import json
import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from agents.kinds import RunCompleted, RunFailedEvent, RunInterrupted, RunTripped, RunWaiting, TurnStarted
from control.accounts import links, tokens
from control.accounts.models import AuditEntry, Role, User
from control.runs.models import Block, Command, Event, Run
from tests.control.api.callers import UNKNOWN
from tests.control.records import make_run, write

STOPPED = {"sockets": 0, "processes": 0, "children": 0, "abandoned": [], "seconds": 0.1, "verified": True}
LINE = {"task": "Look around"}


def cli(*args: str) -> str:
    out = StringIO()
    call_command(*args, stdout=out, stderr=StringIO())
    return out.getvalue().strip()


def refused(*args: str) -> str:
    """The sentence with which a command is refused, with exit code 2."""
    with pytest.raises(CommandError) as caught:
        cli(*args)
    assert caught.value.returncode == 2, caught.value
    text = str(caught.value)
    assert 10 < len(text) < 400 and "Traceback" not in text and "\n" not in text
    return text


@pytest.mark.django_db
def test_create_token_prints_the_token_and_nothing_else():
    secret = cli("create_token", "ci", "--role", "operator")
    token = tokens.authenticate(f"Bearer {secret}")
    assert token is not None and (token.name, token.role) == ("ci", "operator")
    assert AuditEntry.objects.get().action == "create_token"
    assert "already" in refused("create_token", "ci", "--role", "viewer")


@pytest.mark.django_db
def test_a_role_that_is_none_is_refused():
    with pytest.raises(CommandError):
        cli("create_token", "ci", "--role", "king")


@pytest.mark.django_db
def test_login_link_prints_a_link_that_signs_in():
    User.objects.create_user("bob", role=Role.VIEWER)
    ada = User.objects.create_user("ada", role=Role.ADMIN)
    link = cli("login_link")
    assert link.startswith("http")
    assert links.redeem(link.rstrip("/").rsplit("/", 1)[1]) == ada
    assert "bob" in refused("login_link", "nobody")


@pytest.mark.django_db
def test_login_link_without_an_admin_says_what_to_do():
    User.objects.create_user("bob", role=Role.VIEWER)
    assert "login_link USER" in refused("login_link")
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_login_link_of_a_house_without_people_makes_the_first_admin_once():
    first = links.redeem(cli("login_link").rstrip("/").rsplit("/", 1)[1])
    assert first is not None and first.as_role is Role.ADMIN and not first.has_usable_password()
    assert links.redeem(cli("login_link").rstrip("/").rsplit("/", 1)[1]) == first
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_run_agent_prints_the_id_of_a_queued_run():
    pk = cli("run_agent", "default", "Look around", "--max-turns", "3", "--max-cost", "0.5", "--label", "team=pay")
    run = Run.objects.get()
    assert pk == run.pk
    assert run.owner.startswith("cli:") and run.labels == {"team": "pay"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["nobody", "Look"], "agent"),
        (["default", ""], "empty"),
        (["default", "x" * 1_000_001], "bytes"),
        (["default", "Look", "--workspace", "/etc"], "WORKSPACE_ROOTS"),
        (["default", "Look", "--workspace", "/nowhere"], "WORKSPACE_ROOTS"),
        (["default", "Look", "--base-url", "ftp://x"], "http"),
        (["default", "Look", "--max-turns", "0"], "max_turns"),
        (["default", "Look", "--max-cost", "much"], "max_cost"),
        (["default", "Look", "--policy", "nonsense"], "policy"),
        (["default", "Look", "--policy", "/nowhere/p.toml"], "Cannot read"),
        (["default", "Look", "--label", "team"], "KEY=VALUE"),
    ],
)
def test_run_agent_refuses_what_cannot_work(args: list[str], word: str):
    assert word in refused("run_agent", *args)
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_run_agent_takes_a_policy_from_a_file(tmp_path):
    path = tmp_path / "careful.toml"
    path.write_text("[fuses]\nmax_steps = 7\n")
    cli("run_agent", "default", "Look around", "--policy", str(path))
    assert Run.objects.get().spec["policy"] == "careful"
    path.write_text("[fuses\n")
    assert "TOML" in refused("run_agent", "default", "Look around", "--policy", str(path))
    path.write_text("[fuses]\nmax_steps = -7\n")
    assert "max_steps" in refused("run_agent", "default", "Look around", "--policy", str(path))


ENDS = [
    (RunCompleted(final="x"), 0),
    (RunTripped(step=1, fuse="max_steps"), 4),
    (RunInterrupted(command=None, by="x", reason="", stopped=STOPPED), 5),
    (RunFailedEvent(error={"reason": "auth", "message": "x"}), 6),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("end", "code"), ENDS)
def test_watch_follows_to_the_end_and_exits_by_it(end, code: int):
    """Another process, played by a thread, writes the run's log while the command follows it."""

    def drive() -> None:
        try:
            while not (run := Run.objects.first()):
                pass
            write(run, TurnStarted(), turn=1)
            write(run, end)
        finally:
            connection.close()

    driver = threading.Thread(target=drive)
    driver.start()
    out, err = StringIO(), StringIO()
    try:
        call_command("run_agent", "default", "Look around", "--watch", stdout=out, stderr=err)
        got = 0
    except SystemExit as ended:
        got = int(ended.code or 0)
    driver.join()
    run = Run.objects.get()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert got == code
    assert [line["seq"] for line in lines] == list(range(1, run.last_seq + 1))
    assert lines == [json.loads(event.body) for event in Event.objects.order_by("seq")]
    assert err.getvalue().strip() == run.pk


@pytest.mark.django_db
def test_interrupt_pressed_five_times_is_one_command():
    run = make_run()
    answers = [json.loads(cli("interrupt", run.pk, "--reason", "too dear")) for _ in range(5)]
    assert [answer["changed"] for answer in answers] == [True, False, False, False, False]
    assert (Command.objects.get().scope, Command.objects.get().reason) == ("subtree", "too dear")


@pytest.mark.django_db
def test_interrupt_of_a_finished_run_says_so():
    run = make_run()
    write(run, RunCompleted(final="x"))
    assert json.loads(cli("interrupt", run.pk))["reason"] == "already_finished"


@pytest.mark.django_db
def test_interrupt_many_by_filter_first_dry_then_for_real():
    make_run(agent="scout"), make_run(agent="scout"), make_run(agent="other")
    dry = json.loads(cli("interrupt", "--agent", "scout", "--dry-run"))
    assert (dry["eligible"], dry["dry_run"]) == (2, True) and not Command.objects.exists()
    done = json.loads(cli("interrupt", "--agent", "scout", "--block-new-starts"))
    assert Command.objects.filter(bulk=done["bulk"]).count() == 2
    assert Block.objects.get().filter == {"agent": "scout"}
    assert json.loads(cli("interrupt", "--all"))["eligible"] == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "args", [[], [UNKNOWN, "--all"], [UNKNOWN, "--block-new-starts"], ["--status", "nonsense"], [UNKNOWN], ["nonsense"]]
)
def test_interrupt_refuses_what_is_unclear(args: list[str]):
    refused("interrupt", *args)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "args",
    [
        ["steer", "RUN", "note"],
        ["pause", "RUN"],
        ["unpause", "RUN"],
        ["answer", "RUN", "c", "x"],
        ["raise", "RUN", "--max-turns", "9"],
    ],
)
def test_a_finished_run_and_an_unknown_one_refuse_commands(args: list[str]):
    run = make_run()
    write(run, RunCompleted(final="x"))
    assert "ended" in refused(*[run.pk if word == "RUN" else word for word in args])
    assert "no run" in refused(*[UNKNOWN if word == "RUN" else word for word in args])
    assert "no run" in refused(*["nonsense" if word == "RUN" else word for word in args])


@pytest.mark.django_db
def test_an_approval_is_settled_from_the_command_line():
    run = make_run()
    write(run, RunWaiting(reason="approval", call="c1", text="?", name="run_command", args='{"command": "ls"}'))
    for wrong in (["yes"], ["--decision", "edit"], ["--decision", "edit", "--args", '{"cmd": 1}'], ["--args", "["]):
        with pytest.raises(CommandError):
            cli("answer", run.pk, "c1", *wrong)
    assert not Command.objects.exists()
    cli("answer", run.pk, "c1", "--decision", "edit", "--args", '{"command": "ls -l"}')
    assert Command.objects.get().args == {"call": "c1", "decision": "edit", "args": {"command": "ls -l"}}


@pytest.mark.django_db
def test_steer_pause_answer_and_raise_issue_their_commands():
    run = make_run()
    write(run, RunWaiting(reason="question", call="c1", text="Which?"))
    cli("steer", run.pk, "look left")
    cli("pause", run.pk, "--when", "before_call")
    cli("answer", run.pk, "c1", "left")
    cli("raise", run.pk, "--max-cost", "5")
    assert [(c.kind, c.args) for c in Command.objects.order_by("pk")] == [
        ("steer", {"note": "look left"}),
        ("pause", {"when": "before_call"}),
        ("answer", {"call": "c1", "text": "left"}),
        ("raise", {"limits": {"max_cost": "5"}}),
    ]
    assert "limit" in refused("raise", run.pk)
    assert "text" in refused("steer", run.pk, " ")


@pytest.mark.django_db
def test_prune_drops_old_trees_and_nothing_else():
    old, live, young = make_run(), make_run(), make_run()
    child = make_run(parent=live)
    for run in (old, young, child):
        write(run, RunCompleted(final="x"))
    cli("steer", live.pk, "note")
    before = timezone.now() - timedelta(days=30)
    Run.objects.filter(pk__in=[old.pk, child.pk]).update(finished_at=before - timedelta(days=1))
    audited = AuditEntry.objects.count()
    date = before.date().isoformat()
    assert json.loads(cli("prune", "--before", date, "--dry-run"))["runs"] == 1
    assert Run.objects.count() == 4
    gone = json.loads(cli("prune", "--before", date))
    assert (gone["runs"], gone["events"]) == (1, 2)
    assert not Event.objects.filter(run_id=old.pk).exists()
    assert set(Run.objects.values_list("pk", flat=True)) == {live.pk, young.pk, child.pk}
    assert Command.objects.count() == 1
    assert AuditEntry.objects.count() == audited + 1
    assert "2026-01-31" in refused("prune", "--before", "yesterday")


@pytest.mark.django_db
def test_export_of_an_unknown_run_is_refused():
    assert "no run" in refused("export_run", UNKNOWN)
