"""How SQLite keeps the calls: in one tree under their key, and what a table made anew keeps of its rows."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from control.runs.models import Call
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db(transaction=True)]

BEFORE, AFTER = [("runs", "0009_ended_and_owned")], [("runs", "0010_calls_without_rowid")]


def written_as() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE name = 'runs_call'")
        return str(cursor.fetchone()[0])


def test_on_sqlite_the_calls_have_no_rowid_whatever_migration_came_last() -> None:
    if connection.vendor == "sqlite":
        assert written_as().endswith("WITHOUT ROWID")


def test_the_calls_of_an_older_console_are_kept_there_and_back() -> None:
    run = make_run()
    Call.objects.create(run_id=run.pk, id="a", operation="chat", name="tour", label="chat tour", turn=1, cost_usd="0.1")
    Call.objects.create(run_id=run.pk, id="b", operation="execute_tool", name="read_file", late_status="ok")
    before = list(Call.objects.order_by("id").values())
    try:
        MigrationExecutor(connection).migrate(BEFORE)
        if connection.vendor == "sqlite":
            assert not written_as().endswith("WITHOUT ROWID")
        assert list(Call.objects.order_by("id").values()) == before
    finally:
        MigrationExecutor(connection).migrate(AFTER)
    assert list(Call.objects.order_by("id").values()) == before
