"""Circles that sets written blind have shown, the same under another name, each beside work that only looks like it."""

import json

import pytest

from agents.policy import orders
from agents.policy.answers import read_answer
from agents.policy.asked import Answered, Asked
from agents.policy.canonical import meaning
from agents.policy.contents import edited
from agents.policy.guard import Guard
from agents.policy.identity import act_of
from agents.policy.natures import Nature
from tests.agents.policy.guarding import call, policy, user, walk
from tests.agents.policy.test_guard_rounds import by_rules, held


def meeting(title: str, start: str, number: int) -> dict[str, object]:
    args = {"title": title, "start": start, "attendees": ["ann@north.example", "bo@north.example"]}
    return call("calendar.create_event", args, f"Event created.\nid: 4tq{number}l7b3\ninvitations sent: 2")


def test_one_hour_with_the_same_people_is_one_meeting_whatever_it_is_called() -> None:
    hour = "2025-06-17T14:00:00+02:00"
    rows = []
    for n, title in enumerate(["Q3 budget", "Budget talk", "Ann / Bo", "Planning", "Quarter"]):
        rows += [meeting(title, "2025-06-17T12:00:00Z" if n == 2 else hour, n)]
        rows += [call("calendar.list_events", {"date": "2025-06-17"}, "09:30 Standup\n11:00 Design")]
    assert held(by_rules(rows))[0] == 7


def test_other_hours_are_other_meetings() -> None:
    assert not held(by_rules([meeting("Interview", f"2025-06-{17 + n}T14:00:00+02:00", n) for n in range(8)]))


def test_tasks_and_reminders_at_one_hour_are_many() -> None:
    rows = []
    for n, title in enumerate(["Pay the rent", "Call the dentist", "Water the plants", "Buy milk", "Send the report"]):
        rows += [call("create_task", {"list": "home", "title": title, "due": "2025-06-17T09:00"}, f"task_{n}a created")]
        rows += [call("create_reminder", {"text": title, "time": "2025-06-17T09:00"}, f"reminder r{n}k set")]
    assert not held(by_rules(rows))


def test_jobs_with_other_settings_and_orders_of_other_amounts_are_others() -> None:
    rates = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005]
    jobs = [
        call("submit_job", {"script": "train.sh", "lr": one}, f"Submitted batch job {n}81")
        for n, one in enumerate(rates)
    ]
    assert not held(by_rules(jobs))
    sizes = [call("order_item", {"sku": "B-17", "size": 36 + n}, f"order o-{n}7 placed") for n in range(8)]
    assert not held(by_rules(sizes))


def test_moments_are_compared_in_one_time_zone() -> None:
    one, other = {"start": "2025-06-17T12:00:00Z"}, {"start": "2025-06-17T14:00+02:00"}
    assert meaning(one) == meaning(other) != meaning({"start": "2025-06-17T14:00:00Z"})
    assert meaning({"start": "2025-99-99T14:00:00Z"}) != meaning({"start": "2025-99-98T14:00:00Z"})
    assert meaning({"start": "0001-01-01T00:00:00+14:00"})


@pytest.mark.parametrize(
    ("tool", "nature"),
    [("schedule_meeting", Nature.SEND), ("schedule_list", Nature.READ), ("get_schedule", Nature.READ)],
)
def test_schedule_is_a_verb_before_its_object(tool: str, nature: Nature) -> None:
    assert act_of(Asked(call=1, batch=1, tool=tool, args={"room": "A"}), {}).nature is nature


def test_one_job_is_not_queued_a_fourth_time_while_it_is_only_looked_at() -> None:
    rows = []
    for n in range(5):
        rows += [
            call("enqueue_job", {"type": "rebuild", "album": 9917}, json.dumps({"job_id": f"b7c{n}e", "position": n}))
        ]
        rows += [call("job_status", {"job_id": f"b7c{n}e"}, json.dumps({"state": "waiting", "position": n}))]
    assert held(by_rules(rows))[0] == 7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Page: x.example/wall?redirect=https%3A%2F%2Fx.example%2Fann\nSign in",
            "Page: x.example/wall?redirect=%2Fbo\nSign in",
        ),
        ("- main [ref=s1e4]\n- link [ref=s1e11]", "- main [ref=s7e4]\n- link [ref=s7e11]"),
        ("You agree to the terms (req 7f1a)", "You agree to the terms (req 80be)"),
    ],
)
def test_what_a_page_says_of_the_request_is_no_answer(one: str, other: str) -> None:
    assert read_answer(one, False).same == read_answer(other, False).same


def test_what_a_page_says_of_itself_is_an_answer() -> None:
    assert read_answer("x.example/list?page=2", False).same != read_answer("x.example/list?page=3", False).same
    assert read_answer("request 7011 is open", False).same != read_answer("request 7012 is open", False).same


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("And four more in a row, please.", 4),
        ("I've changed the governor, give it another three", 3),
        ("once more please", 1),
        ("We need three more reviewers", 0),
        ("Book two more seats", 0),
        ("Charge the other two cards as well", 0),
    ],
)
def test_so_many_more_is_an_order_where_nothing_is_named(text: str, repeats: int) -> None:
    assert orders.repeats_ordered(text) == repeats


def test_what_a_person_orders_so_many_times_runs_so_often() -> None:
    rows = [user("Run the benchmark once."), call("run_bench", {"name": "cold"}, "cold: 412 ms")]
    rows += [user("And four more in a row, I want to see whether it is stable.")]
    rows += [call("run_bench", {"name": "cold"}, f"cold: {411 + n % 2} ms") for n in range(4)]
    assert not held(walk(rows))


def test_each_thing_of_a_list_is_asked_once_though_all_say_no() -> None:
    names = ["assets", "backups", "brand", "logs", "downloads", "firmware", "invoices", "maps"]
    rows = [call("aws_cli", {"cmd": "s3api list-buckets"}, " ".join(f"tp-{one}" for one in names))]
    denied = "An error occurred (AccessDenied) when calling the ListObjects operation: Access Denied"
    rows += [call("aws_cli", {"cmd": f"s3api list-objects --bucket tp-{one}"}, denied, error=True) for one in names]
    assert not held(by_rules(rows))
    invented = [call("aws_cli", {"cmd": f"s3api list-objects --bucket my-{one}"}, denied, error=True) for one in names]
    assert held(by_rules([rows[0], *invented]))


def test_an_answer_that_comes_at_last_is_never_answered_as_unchanged() -> None:
    """A server that takes its time: what goes through after it had failed is news, however short it is."""
    look = {"command": "curl -s -w '%{http_code}' http://localhost:8080/"}
    rows = [call("run_command", {"command": "docker compose up -d"}, "Started")]
    for n in range(5):
        rows += [call("run_command", look, "000", error=True)]
        rows += [call("run_command", {"command": "docker compose logs --tail 1"}, f"step {'abcde'[n] * 5} done")]
        rows += [call("run_command", {"command": "sleep 20"}, "")]
    rows += [call("run_command", look, "200")]
    assert len(rows) not in held(walk(rows))


def test_a_file_that_goes_back_to_old_code_under_other_remarks_goes_back() -> None:
    local, utc = "export const day = (at) => local(at);\n", "export const day = (at) => utc(at);\n"
    contents = [local, utc, f"// in the zone of the customer\n{local}", f"// the ledger wants it so\n{utc}", local]
    rows = []
    for n, content in enumerate(contents):
        rows += [call("write_file", {"path": "day.ts", "content": content}, "written", edits={"day.ts": content})]
        fault = f"FAIL {('ledger', 'usage')[n % 2]} expected {n % 2}"
        rows += [call("bash", {"command": "npx vitest run"}, fault, error=True)]
    assert 9 in held(by_rules(rows))


def test_a_write_that_leaves_something_new_is_never_answered_as_unchanged() -> None:
    """Also where the arguments do not show the content, as with an editor's `apply`."""
    guard = Guard(policy())
    for number in range(1, 30, 2):
        for at, (tool, text) in enumerate((("apply", "written"), ("check_config", "test is successful"))):
            edits = {"app.conf": edited(f"listen {number};\n")} if tool == "apply" else {}
            verdict = guard.judge(Asked(call=number + at, batch=number + at, tool=tool, args={"path": "app.conf"}))
            final = guard.observe(number + at, Answered(text=text, edits=edits)) or verdict
            assert tool != "apply" or final is None or final.mode is None, (number, final)


def test_the_same_rows_are_not_appended_a_fourth_time() -> None:
    def rows(same: bool) -> list[dict[str, object]]:
        found = []
        for n in range(6):
            new = [[90112, "keller"], [90118, "lumen"]] if same else [[90112 + n, "kbdhjt"[n] * 4]]
            found += [call("http_get", {"url": f"https://billing.example/customers?page={n}"}, f"items {new}")]
            found += [call("csv_append", {"path": "customers.csv", "rows": new}, f"appended ({2 * n + 2} rows)")]
        return found

    assert held(by_rules(rows(same=True)))[0] == 8
    assert not held(by_rules(rows(same=False)))


ROUTES = [
    "users",
    "roles",
    "keys",
    "audit",
    "flags",
    "export",
    "purge",
    "tenants",
    "billing",
    "sessions",
    "hooks",
    "jobs",
]


def test_a_proof_that_all_is_forbidden_is_not_ended_and_its_report_goes_out() -> None:
    rows = [user("Prove that support gets 403 on every admin route of admin_routes.txt.")]
    rows += [call("cat", {"path": "admin_routes.txt"}, "\n".join(f"GET /admin/{one}" for one in ROUTES))]
    for n, route in enumerate(ROUTES):
        args = {"method": "GET", "url": f"https://api.example/admin/{route}", "as": "support"}
        answer = f'HTTP/1.1 403 Forbidden\nx-request-id: a91c-{n}f\n\n{{"error":"forbidden","required":"admin"}}'
        rows += [call("curl", args, answer)]
    rows += [call("create_issue", {"title": "All routes are closed", "body": "Each answers 403."}, "SEC-318 created")]
    judged = walk(rows)["verdicts"]
    assert not [one for one in judged if one["rung"] == "stop" or one.get("mode") == "refuse"], judged


def test_a_camera_that_is_moved_by_so_much_moves_each_time() -> None:
    rows = [call("move_camera", {"pan": 10}, "ok") for _ in range(6)]
    assert not held(walk(rows))
    assert held(walk([call("move_card", {"card": "c-1", "list": "done"}, "ok") for _ in range(8)]))


def test_a_number_before_the_count_of_failures_is_no_count() -> None:
    assert read_answer("E assert 4 == 7\n=== 1 failed, 12 passed in 0.3s", False).tally == (1.0, 12.0)
    rows = []
    for n in range(8):
        content = f"x = {n}\n"
        rows += [call("write_file", {"path": "a.py", "content": content}, "ok", edits={"a.py": content})]
        rows += [call("bash", {"command": "pytest -q"}, f"FAILED test_{n} - assert {n}\n{8 - n} failed", error=True)]
    assert not held(walk(rows))
