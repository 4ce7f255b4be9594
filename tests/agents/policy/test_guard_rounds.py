"""Rounds that no single call shows: made and taken back, one content by many ways, over and asked again; each beside
work that only looks like it."""

import json
from itertools import pairwise

from agents.policy.asked import Answered, Asked
from agents.policy.guard import Guard
from agents.policy.policies import shipped
from tests.agents.policy.guarding import call, policy, rung_of, walk

RULES = {name: rule for name, rule in policy().rules.items() if name != "stagnation"}


def by_rules(calls: list[dict[str, object]]) -> dict[str, object]:
    """What the rules say without the weighed signs."""
    body = shipped("default")
    kept = {name: one for name, one in body["rules"].items() if name in RULES}
    return walk(calls, policy(rules=kept))


def held(answer: dict[str, object]) -> list[int]:
    return [one["call"] for one in answer["verdicts"] if one["rung"] in ("block", "stop")]  # type: ignore[attr-defined]


def event(number: int) -> dict[str, object]:
    args = {"title": "Board", "start": "2026-04-02T17:00", "room": "Hall 2"}
    return call("calendar_create_event", args, json.dumps({"id": f"ev_{number}a", "room": "declined"}))


def deleted(number: int) -> dict[str, object]:
    return call("calendar_delete_event", {"id": f"ev_{number}a"}, '{"deleted": true}')


def test_what_was_made_and_taken_back_twice_is_not_made_a_third_time() -> None:
    answer = by_rules([one for n in range(4) for one in (event(n), deleted(n))])
    assert rung_of(answer, 3) == "observe"
    assert rung_of(answer, 5) == "block"


def test_what_is_made_anew_after_other_work_is_left_alone() -> None:
    rows = []
    for n in range(4):
        rows += [event(n), call("room_set_status", {"room": "Hall 2", "plan": n}, '{"ok": true}'), deleted(n)]
    assert not held(by_rules(rows))


DOC = "We study tidal energy in narrow sounds and show that blockage above 0.3 lowers the yield by 12 %."


def test_one_text_by_ever_other_readers_is_held_back_from_the_fifth_look_on() -> None:
    ways = [
        call("fetch", {"url": "https://a.example/abs/1"}, f"<h1>Blockage</h1><p>{DOC}</p>"),
        call("scholar_lookup", {"title": "Blockage"}, json.dumps({"year": 2019, "abstract": DOC})),
        call("crossref_get", {"doi": "10.1/1"}, json.dumps({"DOI": "10.1/1", "abstract": f"<jats:p>{DOC}</jats:p>"})),
        call("bash", {"command": "curl -s https://m.example/1 | html2text"}, f"Cached copy.\nBlockage\n{DOC}"),
        call("reader_open", {"url": "https://r.example/1"}, f"Title: Blockage | Abstract | {DOC} | Purchase"),
        call("fetch", {"url": "https://web.example/1"}, f"Archived.\n\n{DOC}\n"),
    ]
    assert held(by_rules(ways)) == [6]


def test_one_reader_over_many_things_that_say_the_same_is_an_audit() -> None:
    rows = [call("fetch", {"url": f"https://g.example/{n}/LICENSE"}, f"Project {n}\n{DOC}") for n in range(3)]
    rows += [call("bash", {"command": f"cd p{n} && cat LICENSE"}, DOC) for n in range(3)]
    assert not held(by_rules(rows))


def test_a_text_that_is_read_again_after_it_was_written_is_not_one_content_by_many_ways() -> None:
    rows = []
    for n, tool in enumerate(("read_file", "view", "open_page", "read_file", "view", "open_page")):
        rows.append(call("edit_file", {"path": "a.md", "old": f"v{n}", "new": f"v{n + 1}"}, "edited"))
        rows.append(call(tool, {"path": "a.md"}, DOC))
    assert not held(by_rules(rows))


def test_a_final_state_is_told_four_times_at_most_also_between_waits() -> None:
    rows = [call("exports.get_status", {"id": "x1"}, f'{{"status": "RUNNING", "progress": {n}}}') for n in (40, 85)]
    for _ in range(5):
        rows.append(call("exports.get_status", {"id": "x1"}, '{"status": "COMPLETED", "progress": 100}'))
        rows.append(call("wait", {"seconds": 15}, "ok"))
    assert held(by_rules(rows))[0] == 9


def test_what_ends_in_the_same_way_under_another_number_each_time_has_ended_in_the_same_way() -> None:
    args = {"side": "buy", "symbol": "NHY", "qty": 200, "limit": 61.2}
    rows = [
        call("broker.place", args, json.dumps({"order": f"N-70{n}1", "state": "REJECTED", "why": "price band"}))
        for n in range(6)
    ]
    assert held(by_rules(rows))[0] == 4


def test_a_nonce_under_a_name_that_tells_nothing_makes_no_call_another_one() -> None:
    def asked(nonce: str, answered: str) -> dict[str, object]:
        args = {"h": "c0", "q": [4, 9], "n": nonce}
        return call("fn_17", args, json.dumps({"ok": 0, "e": "E_71", "n": answered, "t": 7.25}), error=True)

    rows = [asked(*pair) for pair in pairwise(["d8cb38b8df", "4ba464828b", "96b51e72e1", "ed64e2d8a9", "82a377ee83"])]
    assert held(by_rules(rows)) == [3, 4]
    by_id = [call("fn_17", {"id": one}, "", error=False) for one in ("d8cb38b8df", "4ba464828b", "96b51e72e1")]
    assert by_rules(by_id)["executed"] == [1, 2, 3]


def test_scrolling_on_at_the_end_is_held_back_and_scrolling_on_before_it_is_not() -> None:
    def scrolled(down: int, y: int) -> dict[str, object]:
        return call("browser_scroll", {"dy": down}, json.dumps({"y": y, "max": 4820, "cards": 57}))

    assert not held(by_rules([scrolled(400, 400 * n) for n in range(1, 13)]))
    stuck = by_rules([scrolled(1600, 4800), *[scrolled(1600 + 100 * (n % 3), 4820) for n in range(7)]])
    assert held(stuck)[0] == 6


def test_a_feed_that_begins_anew_is_seen_on_the_screen() -> None:
    posts = [f"Friends of clay\n- post {n}: glaze test\n- post {n}: raku evening\n- welcome" for n in range(3)]
    rows = [call("computer.scroll", {"direction": "down"}, posts[n % 3]) for n in range(11)]
    assert held(by_rules(rows))[0] <= 9


def test_looks_that_are_not_read_yet_survive_in_the_state() -> None:
    ways = ["fetch", "reader_open", "scholar_lookup", "cache_get", "fetch", "reader_open", "mirror_get", "fetch"]
    rows = [call(tool, {"key": n}, f"wrapped {n}\n{DOC}", batch=n + 1) for n, tool in enumerate(ways)]
    whole, parts = Guard(policy()), Guard(policy())
    for n, row in enumerate(rows, 1):
        said = []
        for guard in (whole, parts):
            verdict = guard.judge(Asked(call=n, batch=n, tool=row["tool"], args=row["args"]))
            guard.observe(n, Answered(text=row["result"], is_error=False, edits={}))
            said.append(verdict)
        assert said[0] == said[1]
        parts = Guard(policy(), json.loads(json.dumps(parts.state())))
