"""The audit trail in the window: read, searched, paged by key, exported; never changed, not even by us."""

import csv
import io
import json
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from control.accounts import audit, trail
from control.accounts.models import AuditEntry, Role
from control.accounts.roles import Actor
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
EVIL = "<script>alert(1)</script>\u202e"
RUN = "run:0193b2c4-0000-7000-8000-00000000000a"


def act(action: str = "interrupt", target: str = RUN, *, by: str = "ann", **more: Any) -> AuditEntry:
    return audit.record(Actor(name=by, role=Role.OPERATOR, address="10.0.0.7"), action, target, **more)


def whole(answer: Any) -> str:
    return b"".join(answer.streaming_content).decode()


def test_a_row_tells_who_what_why_what_changed_and_from_where(operator: Client):
    act("raise", reason="nearly done", filter={"agent": "importer"}, before={"max_cost": "2"}, after={"max_cost": "4"})
    html = page(operator, "/audit/")
    text = words(html)
    for word in ("ann operator raise", "run:…00000000000a", "“nearly done”", "max_cost was", "10.0.0.7", "agent="):
        assert word in text, word
    assert f'href="/runs/{RUN[4:]}/"' in html


def test_it_is_searched_by_field_by_word_and_by_day(operator: Client):
    first = act("steer", by="ben", reason="look at conftest", result="run_finished")
    act("interrupt", "bulk:1")
    day = f"{first.at:%Y-%m-%d}"
    for query, there in (
        ("q=actor:ben", "ben"),
        ("q=action:interrupt", "bulk:1"),
        ("q=result:run_finished", "conftest"),
        ("q=target:bulk", "bulk:1"),
        ("q=conftest", "conftest"),
        (f"since={day}&until={day}", "bulk:1"),
    ):
        html = page(operator, f"/audit/?{query}")
        assert there in html, query
    assert "Nothing like it" in page(operator, "/audit/?q=actor:nobody")
    assert "Nothing like it" in page(operator, "/audit/?until=2001-01-01")
    assert page(operator, "/audit/?since=never&before=x'--&q=%00") and "bulk:1" not in page(
        operator, "/audit/?q=actor:ben"
    )


def test_pages_follow_the_key_while_rows_come_in(operator: Client):
    for number in range(trail.PAGE + 5):
        act(target=f"bulk:{number}")
    html = page(operator, "/audit/")
    following = html.split('href="?before=')[1].split('"')[0]
    for number in range(5):
        act(target=f"late:{number}")
    older = page(operator, f"/audit/?before={following}")
    assert ">bulk:4<" in older and ">bulk:5<" not in older and "late:" not in older and "Newest" in older


def test_an_admin_exports_what_was_found_and_that_is_a_row_too(admin: Client):
    act("raise", before={"max_cost": "2"}, reason='a "quoted", word')
    act("steer", by="=cmd()", reason="@x")
    lines = [json.loads(line) for line in whole(admin.get("/audit/export.jsonl?q=action:raise")).splitlines()]
    (row,) = lines
    assert row["before"] == {"max_cost": "2"} and row["at"].endswith("Z") and row["address"] == "10.0.0.7"
    table = list(csv.DictReader(io.StringIO(whole(admin.get("/audit/export.csv")))))
    assert {row["action"] for row in table} == {"raise", "steer", "export_audit"}
    steer = next(row for row in table if row["action"] == "steer")
    assert (steer["actor"], steer["reason"]) == ("'=cmd()", "'@x")
    exports = list(AuditEntry.objects.filter(action="export_audit").order_by("id").values_list("filter", "after"))
    assert exports == [({"q": "action:raise"}, {"form": "jsonl"}), (None, {"form": "csv"})]


def test_a_viewer_reads_none_of_it_and_an_operator_exports_none(viewer: Client, operator: Client):
    assert viewer.get("/audit/").status_code == 403 and 'href="/audit/"' not in page(viewer, "/")
    assert operator.get("/audit/export.csv").status_code == 403
    assert AuditEntry.objects.filter(result="forbidden").count() == 2
    assert "export.csv" not in page(operator, "/audit/")


def test_no_row_is_ever_changed_or_deleted():
    row = act()
    for change in (
        lambda: AuditEntry.objects.update(actor="eve"), lambda: AuditEntry.objects.all().delete(), row.delete
    ):  # fmt: skip
        with pytest.raises(TypeError, match="only ever added to"):
            change()
    row.actor = "eve"
    with pytest.raises(DatabaseError), transaction.atomic():
        row.save()
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_auditentry SET actor = 'eve'")
    assert AuditEntry.objects.get().actor == "ann"


def test_what_was_written_down_is_only_text(operator: Client):
    act(EVIL, EVIL, by=EVIL, reason=EVIL, filter={EVIL: EVIL}, before={EVIL: EVIL}, after=EVIL, result=EVIL)
    html = page(operator, "/audit/")
    assert "<script>alert" not in html and "\u202e" not in html
