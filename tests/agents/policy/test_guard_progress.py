"""Work that comes nearer with each repeat is left alone; what only looks like news is not taken for it."""

from tests.agents.policy.guarding import call, rung_of, user, walk


def test_batch_whose_backlog_falls_is_never_refused_nor_ended_and_one_that_moves_nothing_is() -> None:
    def run(left: list[int]) -> list[dict[str, object]]:
        rows = []
        for count in left:
            rows.append(call("queue_count", {"queue": "old"}, f'{{"waiting": {count}}}'))
            rows.append(call("queue_assign", {"queue": "old", "size": 40}, '{"assigned": 40}'))
        return rows

    falling = walk(run([500 - 40 * n for n in range(12)]))
    assert all(one.get("mode") != "refuse" and one["rung"] != "stop" for one in falling["verdicts"]), falling
    still = walk(run([500] * 12))
    assert any(one.get("mode") == "refuse" for one in still["verdicts"])


def test_value_that_creeps_towards_its_mark_is_left_alone() -> None:
    rows = [call("solver_iterate", {"sweeps": 50}, f"rms={0.08 + 0.01 / (n + 1):.6f}") for n in range(10)]
    assert {one["rung"] for one in walk(rows)["verdicts"]} <= {"observe", "steer"}


def test_look_at_another_host_runs_although_all_refuse_alike() -> None:
    rows = [
        call("ssh_probe", {"host": f"edge-{n:02}", "user": "ops"}, "ops@: Permission denied (publickey).", error=True)
        for n in range(8)
    ]
    answer = walk(rows)
    assert answer["executed"] == list(range(1, 9))


def test_noun_before_get_names_a_look() -> None:
    rows = [call("refund_create", {"payment": "p7", "amount": 45}, '{"refund": "re_1", "status": "pending"}')]
    for wait in (15, 30, 60, 120):
        rows.append(call("sleep", {"s": wait}, ""))
        rows.append(call("refund_get", {"refund": "re_1"}, '{"refund": "re_1", "status": "pending"}'))
    assert all(one["rung"] == "observe" for one in walk(rows)["verdicts"])


def test_fifth_announcement_in_a_row_without_a_call_ends_the_run() -> None:
    said = [
        "Let me begin.",
        "Starting now.",
        "First the parser.",
        "I begin with it.",
        "Right, now.",
        "Here I go.",
        "Now!",
    ]
    rows = [user("Fix the parser."), *[{"tool": "__assistant_text__", "args": {"text": text}} for text in said]]
    answer = walk(rows)
    assert answer["final"] == "stop"
    assert rung_of(answer, 6) == "stop"
    assert answer["verdicts"][-1]["call"] == 6


def test_sign_of_life_and_moves_one_way_are_done_again_and_again() -> None:
    for tool, args in (("send_heartbeat", {"service": "agent"}), ("move_forward", {"cm": 50}), ("turnLeft", {})):
        answer = walk([call(tool, args, '{"ok": true}') for _ in range(12)])
        assert {one["rung"] for one in answer["verdicts"]} <= {"observe"}, (tool, answer)


def test_effect_that_is_asked_for_again_and_again_is_refused_and_the_run_ended_only_late() -> None:
    answer = walk([call("notify_team", {"text": "step finished"}, '{"ok": true}') for _ in range(16)])
    assert answer["executed"] == [1, 2]
    assert rung_of(answer, 3) == "block" and rung_of(answer, 12) == "block"
    assert answer["final"] == "stop"


def test_one_note_to_oneself_in_ever_other_words_is_held_back_and_notes_of_different_things_are_not() -> None:
    def saved(texts: list[str]) -> dict[str, object]:
        return walk([call("memory_save", {"text": text}, f"Saved (id mem_{n:02}f).") for n, text in enumerate(texts)])

    same = [
        "Anna wants the report in German.", "The report is wanted in German by Anna.", "Anna: report in German.",
        "Report for Anna in German.", "Anna would like the German report.", "German report is what Anna wants.",
        "Anna wants a German report.",
    ]  # fmt: skip
    assert any(one["rung"] == "block" for one in saved(same)["verdicts"])
    other = [
        "Anna wants the report in German.", "Bo's flight leaves on Friday.", "The build needs Java 21.", "Rent is due.",
        "Cy prefers tea.", "The printer on floor 2 is broken.", "Deploys freeze in December.",
    ]  # fmt: skip
    assert all(one["rung"] == "observe" for one in saved(other)["verdicts"])


def test_keys_that_are_rotated_one_by_one_are_no_screen_that_stays_still() -> None:
    rotated = "Success! Data written to: the static role was rotated and the new password was stored."
    rows = [call("vault_rotate", {"path": f"database/static-roles/{one}"}, rotated) for one in "abcdefghijk"]
    assert {one["rung"] for one in walk(rows)["verdicts"]} <= {"observe"}


def test_form_that_grows_line_by_line_is_filled_in_peace() -> None:
    rows = []
    empty = "New empty line added. Focus in 'Item'. Fields: item [ ], quantity [ ], price (looked up)."
    for n, item in enumerate(("beech board", "dowel 8x40", "glue", "sandpaper", "oil", "screws", "hinges")):
        rows.append(call("click", {"ref": "btn-add-line"}, empty))
        rows.append(call("fill", {"row": "last", "item": item}, f"Line {n + 1}: {item}. Sum {200 + 37 * n},40"))
    assert all(one.get("mode") != "refuse" for one in walk(rows)["verdicts"])


def test_rows_deleted_in_portions_are_deleted_to_the_last() -> None:
    sql = "DELETE FROM raw_event WHERE ctid IN (SELECT ctid FROM raw_event WHERE at < '2024-01-01' LIMIT 50000)"
    rows = []
    for left in [50000] * 9 + [11204, 0]:
        rows.append(call("psql", {"db": "events", "sql": sql}, f"DELETE {left}"))
        rows.append(call("psql", {"db": "events", "sql": "SELECT pg_sleep(5)"}, " pg_sleep\n----------\n \n(1 row)"))
    assert all(one.get("mode") != "refuse" for one in walk(rows)["verdicts"])


def hold(n: int) -> dict[str, object]:
    args = {"hotel": "H-7", "checkin": "2026-08-14", "guest": "G-20"}
    return call("create_room_hold", args, f'{{"hold": "HLD-{n}Q", "room": "40{n}", "rooms_left": {9 - n}}}')


def test_fourth_of_the_same_is_not_made_though_each_answer_names_another_one() -> None:
    answer = walk([hold(n) for n in range(1, 7)])
    assert answer["executed"] == [1, 2, 3]
    ordered = walk([user("Hold 6 identical rooms, please: one per call."), *[hold(n) for n in range(1, 7)]])
    assert ordered["executed"] == list(range(2, 8)), "so many were asked for"
    between = [call("create_snapshot", {"vm": "db1"}, f"snap-{n}a") for n in range(6)]
    steps = [call("migrate", {"step": n}, f"step {n} applied") for n in range(6)]
    laced = walk([one for pair in zip(steps, between, strict=True) for one in pair])
    assert laced["executed"] == list(range(1, 13)), "something was done in between"


def test_date_range_is_no_order_to_repeat() -> None:
    answer = walk([user("Ein Zimmer vom 14. bis 16. August, bitte."), *[hold(n) for n in range(1, 7)]])
    assert answer["executed"] == [2, 3, 4]


def test_payment_through_a_tool_whose_name_says_nothing_is_refused_the_third_time() -> None:
    for args in (
        {"obj": "payment", "ref": "RE-448", "amount": "1284.10"},
        {"kind": 7, "amount": 90, "recipient": "NL91 ABNA 0417"},
    ):
        rows = [call("op_exec", {**args, "idempotency_key": f"k{n}"}, f'{{"id": "pm_{n}f30{n}"}}') for n in range(5)]
        assert walk(rows)["executed"] == [1, 2], args


def test_search_that_is_sent_by_post_is_a_look() -> None:
    made = call("API-post-page", {"title": "Sync"}, "gateway timeout after 30000 ms", error=True)
    look = call("API-post-search", {"query": "Sync"}, '{"results": []}')
    rows = [made, look, call("wait", {"seconds": 15}), made, look, call("wait", {"seconds": 60}), made, look]
    assert all(one.get("mode") != "refuse" for one in walk(rows)["verdicts"])


def test_form_that_names_another_field_each_time_is_being_filled_in() -> None:
    asks = (
        "a signed contract must be attached", "the close date lies in the past", "a billing contact is missing",
        "purchase order number expected", "loss reason conflicts with winning", "payment terms unknown",
    )  # fmt: skip
    fields: dict[str, str] = {"stage": "won"}
    rows = []
    for number, told in enumerate(asks):
        rows.append(call("crm_update", {"id": "006", **fields}, f"400 invalid: validation: {told}", error=True))
        fields |= {f"field_{number}": f"value {number}"}
    assert all(one.get("mode") != "refuse" for one in walk(rows)["verdicts"])
    same = [call("crm_update", {"id": "006", "note": f"try {n}"}, rows[0]["result"], error=True) for n in range(6)]
    assert any(one.get("mode") == "refuse" for one in walk(same)["verdicts"])


def test_what_goes_through_after_failing_counts_as_progress() -> None:
    rows = []
    for name in "abcdefghijk":
        command = {"command": f"openstack volume create --size 200 vol-{name} -f value -c id"}
        busy = "Service Unavailable: try again at a later time (HTTP 503)"
        again = {"command": f"sleep 10 && {command['command']}"}
        id = f"8da91679-24be-d55e-f17e-2a59b3aa19{ord(name):x}"
        rows += [
            call("shell", command, busy, error=True),
            call("shell", again, busy, error=True),
            call("shell", again, id),
        ]
    answer = walk(rows)
    assert answer["final"] != "stop" and len(answer["executed"]) == len(rows), answer["verdicts"][-3:]
