"""SQLite keeps the calls in one tree under their key instead of a table and an index: each append touches fewer pages.

A later migration that alters `runs_call` makes the table anew and has to do this again.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_WITHOUT = " WITHOUT ROWID"


def _made_anew(editor: BaseDatabaseSchemaEditor, tail: str) -> None:
    with editor.connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'runs_call'")
        (sql,) = cursor.fetchone()
    made = sql.removesuffix(_WITHOUT).replace('"runs_call"', '"runs_call_anew"', 1) + tail
    for statement in (
        made,
        "INSERT INTO runs_call_anew SELECT * FROM runs_call",
        "DROP TABLE runs_call",
        'ALTER TABLE runs_call_anew RENAME TO "runs_call"',
    ):
        editor.execute(statement, params=None)


def without(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "sqlite":
        _made_anew(editor, _WITHOUT)


def with_rowid(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "sqlite":
        _made_anew(editor, "")


class Migration(migrations.Migration):
    dependencies = [("runs", "0009_ended_and_owned")]
    operations = [migrations.RunPython(without, with_rowid)]
