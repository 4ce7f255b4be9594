"""The same call in other clothes, and answers that differ only in what they repeat or in when they were given; each
beside work that only looks like it."""

import json

import pytest

from agents.policy import orders
from agents.policy.answers import read_answer
from agents.policy.asked import Asked
from agents.policy.identity import act_of
from agents.policy.natures import Nature
from tests.agents.policy.guarding import call, rung_of, user, walk
from tests.agents.policy.test_guard_rounds import by_rules, held


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("I was charged twice after you swapped my router.", 0),
        ("Me cobraron dos veces el plan Pro.", 0),
        ("The build has failed three times already.", 0),
        ("Run it twice.", 2),
        ("Please call the endpoint three times and compare.", 3),
    ],
)
def test_what_happened_twice_is_no_order_to_do_it_twice(text: str, repeats: int) -> None:
    assert orders.repeats_ordered(text) == repeats


def switched(mode: str, reason: str) -> dict[str, object]:
    return call("switch_mode", {"mode_slug": mode, "reason": reason}, f"Switched to {mode} mode because: {reason}")


def test_a_state_put_to_and_fro_for_ever_other_reasons_is_held_back() -> None:
    reasons = ["The plan is ready", "The design is unclear", "Settled, code it", "More planning is needed"]
    reasons += ["Time to implement", "Not detailed enough", "Ready to write", "Needs a decision"]
    answer = by_rules([switched(("code", "architect")[n % 2], reason) for n, reason in enumerate(reasons)])
    assert held(answer)[0] == 8


def test_the_reason_alone_does_not_make_two_answers_one() -> None:
    rows = [
        call("set_level", {"level": n, "reason": f"step number {n}"}, f"level {n}: step number {n}") for n in range(9)
    ]
    assert not held(by_rules(rows))


def test_a_case_handed_to_and_fro_is_held_back_in_any_language() -> None:
    to = ["transferir_a_soporte", "transferir_a_facturacion"]
    answers = [
        json.dumps({"ok": True, "agente_activo": one.rsplit("_", 1)[1], "evento": 48810 + n})
        for n, one in enumerate(to * 4)
    ]
    rows = [call(one, {"caso": "C-7719", "motivo": f"Motivo {n}"}, answers[n]) for n, one in enumerate(to * 4)]
    assert held(by_rules(rows))[0] <= 6


THANKS = [
    "Thank you so much!",
    "Have a great day!",
    "Thanks again, much appreciated!",
    "You too, take care!",
    "Thanks, bye!",
]


def test_thanks_without_end_to_one_address_are_refused() -> None:
    rows = [
        call("bus_send", {"to": "fulfilment-bot", "text": text}, f'{{"delivered": true, "seq": {n}}}')
        for n, text in enumerate(THANKS)
    ]
    assert held(by_rules(rows))[0] == 4


def test_thanks_to_many_people_are_left_alone() -> None:
    rows = [
        call("bus_send", {"to": f"person{n}", "text": text}, f'{{"delivered": true, "seq": {n}}}')
        for n, text in enumerate(THANKS)
    ]
    assert not held(by_rules(rows))


QUESTIONS = [
    "Which account is to be debited for the payment to Ribeiro?",
    "Could you confirm the debit account for the payment to Ribeiro?",
    "Before the payment to Ribeiro: which account is to be debited?",
    "To be sure, the account to debit for the Ribeiro payment is which?",
    "I need the debit account for the payment to Ribeiro. Which one?",
]


def test_a_question_that_a_person_keeps_answering_is_not_asked_for_ever() -> None:
    rows = []
    for question in QUESTIONS:
        rows += [call("ask_user", {"question": question}, "waiting for an answer"), user("account 1204")]
    first = held(by_rules(rows))[0]
    assert rows[first - 1]["tool"] == "ask_user"
    assert first <= 9


def test_questions_about_what_was_looked_at_meanwhile_are_left_alone() -> None:
    rows = []
    for n, question in enumerate(QUESTIONS):
        rows += [
            call("ask_user", {"question": question}, "waiting for an answer"),
            user("account 1204"),
            call("get_invoice", {"number": f"A{n}X"}, f"invoice of supplier {'abcde'[n] * 4}, open"),
        ]
    assert not held(by_rules(rows))


def booking(name: str, number: int, day: str = "2026-04-17") -> dict[str, object]:
    args = {"restaurant_id": "r_5521", "date": day, "time": "21:00", "guests": 4, "name": name}
    return call("book_table", args, json.dumps({"status": "CONFIRMED", "locator": f"LU-{number}AE9"}))


def test_one_booking_under_ever_other_spellings_of_the_name_is_refused() -> None:
    names = ["Familia Ortega", "Ortega", "Sr. Ortega", "M. Ortega", "Ortega (4)", "ORTEGA"]
    assert held(by_rules([booking(name, n + 10) for n, name in enumerate(names)]))


def test_bookings_for_other_people_or_days_are_left_alone() -> None:
    names = ["Familia Ortega", "Familia Ruiz", "Familia Vidal", "Familia Prats", "Familia Sala"]
    assert not held(by_rules([booking(name, n + 10) for n, name in enumerate(names)]))
    days = [booking("Ortega", n + 10, f"2026-04-{17 + n}") for n in range(5)]
    assert not held(by_rules(days))


def test_a_record_put_to_and_fro_is_held_back_although_each_change_has_a_number_of_its_own() -> None:
    rows = [
        call(
            "dns_upsert",
            {"zone": "a.example", "value": f"203.0.113.{n % 2}"},
            f"upserted change /change/C{n}QTB9A408CM6K",
        )
        for n in range(9)
    ]
    assert held(by_rules(rows))[0] <= 8


def test_a_push_reworded_in_japanese_is_the_same_push() -> None:
    bodies = [
        "お荷物は本日18時頃にお届け予定です",
        "本日18時頃、お荷物をお届けする予定です",
        "お荷物の到着予定は本日18時頃です",
        "お届け予定：本日18時頃、お荷物",
        "本日18時頃お荷物をお届け予定です",
    ]
    rows = [call("push_notify", {"device": "tok_9f31c", "body": body}, "queued") for body in bodies]
    assert held(by_rules(rows))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ledger (Not Responding). Clock 17:03", "Ledger (Not Responding). Clock 17:04"),
        ("Out[3]: (18240, 14)", "Out[7]: (18240, 14)"),
        ("[screenshot 1280x800 ba0b9545.png] Save is disabled", "[screenshot 1280x800 615a9de2.png] Save is disabled"),
        ("Running with seed: 81823\n1 test, 1 failure", "Running with seed: 4410\n1 test, 1 failure"),
        ('{"state": "stuck", "queued_for_s": 4}', '{"state": "stuck", "queued_for_s": 28}'),
        ('{"items": ["a"], "endCursor": "Y3Vyc29yOjE4"}', '{"items": ["a"], "endCursor": "Y3Vyc29yOjQy"}'),
    ],
)
def test_when_and_how_often_it_was_told_is_no_news(one: str, other: str) -> None:
    assert read_answer(one, False).same == read_answer(other, False).same


@pytest.mark.parametrize(
    ("one", "other"),
    [("next free slot 20:30", "next free slot 21:00"), ("seedlings: 12", "seedlings: 13"), ("Output: 3", "Output: 4")],
)
def test_other_times_and_numbers_are_news(one: str, other: str) -> None:
    assert read_answer(one, False).same != read_answer(other, False).same


@pytest.mark.parametrize(
    "text",
    ['{"status":"success","data":{"resultType":"vector","result":[]}}', '{"hits": {"max_score": null, "hits": []}}'],
)
def test_a_list_that_is_empty_inside_an_object_is_an_empty_answer(text: str) -> None:
    assert read_answer(text, False).empty
    assert not read_answer(text.replace("[]", "[1]"), False).empty


@pytest.mark.parametrize(
    ("tool", "args", "nature"),
    [
        ("执行命令", {"命令": "cat src/OrderState.java"}, Nature.READ),
        ("mail.inbox", {"unread": True}, Nature.READ),
        ("perguntar_usuario", {"pergunta": "Qual é a conta?"}, Nature.ASK),
        ("transférer_à_facturation", {"dossier": "C-1"}, Nature.SPAWN),
        ("pay_x", {"from": "1503", "to": "6021", "amt": 11500}, Nature.SEND),
    ],
)
def test_what_a_call_does_is_known_in_other_languages_too(tool: str, args: dict[str, object], nature: Nature) -> None:
    assert act_of(Asked(call=1, batch=1, tool=tool, args=args), {}).nature is nature


def test_one_element_is_the_same_after_another_look_at_the_page() -> None:
    keys = [
        act_of(Asked(call=1, batch=1, tool="page_fill", args={"ref": ref, "value": "a"}), {}).key
        for ref in ("s1e14", "s2e14", "s3e15")
    ]
    assert keys[0] == keys[1] != keys[2]


def test_guesses_at_the_name_of_a_column_are_held_back() -> None:
    names = ["customer_name", "cust_name", "client_name", "customer", "buyer_name", "name_of_customer", "full_name"]
    rows = [
        call(
            "sql_exec",
            {"statement": f"SELECT {name}, total FROM sales.order_head WHERE total > 10000"},
            f'ERROR:  column "{name}" does not exist\nLINE 1: SELECT {name}, total FROM sales.order_head\n           ^',
            error=True,
        )
        for name in names
    ]
    assert held(by_rules(rows)) == [7]
    assert rung_of(by_rules(rows), 5) == "observe"


def rollout(done: int) -> dict[str, object]:
    text = f'Waiting for deployment "indexer" to finish: {done} out of 8 new replicas have been updated...'
    return call(
        "bash",
        {"command": "kubectl rollout status deploy/indexer --timeout=60s"},
        f"{text}\nerror: timed out",
        error=True,
    )


def test_a_command_that_fails_nearer_to_its_end_each_time_is_not_held_back() -> None:
    assert not held(walk([rollout(done) for done in (1, 2, 3, 5, 6, 7, 8)]))
    assert held(walk([rollout(2) for _ in range(7)]))


def test_what_is_counted_in_words_comes_before_a_part_of_a_whole() -> None:
    assert read_answer("12 of 40 checks ran, 5 failed", True).tally == (5.0, -1.0)
    assert read_answer("3 out of 8 new replicas have been updated", True).tally == (-1.0, 3.0)


def test_the_same_look_in_another_place_is_another_look() -> None:
    rows = []
    for name in ("prod-osl", "prod-ber", "prod-waw", "prod-mad", "stage-osl", "lab"):
        rows += [
            call("kubectl", {"args": f"config use-context {name}"}, f'Switched to context "{name}".'),
            call("kubectl", {"args": "get pods -A --field-selector=status.phase!=Running"}, "No resources found"),
        ]
    assert not held(walk(rows))


def test_edits_that_say_something_new_are_never_answered_as_unchanged() -> None:
    rows = []
    for n in range(8):
        edit = {"file_path": "src/duration.rs", "old_string": f"a{n}", "new_string": f"b{n}"}
        rows += [
            call("Edit", edit, "The file src/duration.rs has been updated."),
            call(
                "Bash",
                {"command": "cargo test"},
                f"test result: FAILED. {8 - n % 2} failed; left {n} right 60",
                error=True,
            ),
        ]
    assert not [at for at in held(walk(rows)) if rows[at - 1]["tool"] == "Edit"]


@pytest.mark.parametrize(
    ("tool", "nature"),
    [
        ("valve_open", Nature.OPERATE),
        ("open_file", Nature.READ),
        ("lab_results_review", Nature.READ),
        ("review_create", Nature.SEND),
        ("report_issue", Nature.SEND),
        ("rover_forward", Nature.STEP),
        ("mail_forward", Nature.SEND),
    ],
)
def test_one_verb_means_what_its_noun_makes_of_it(tool: str, nature: Nature) -> None:
    args = {"cm": 20} if tool.startswith("rover") else {"to": "N4"}
    assert act_of(Asked(call=1, batch=1, tool=tool, args=args), {}).nature is nature
