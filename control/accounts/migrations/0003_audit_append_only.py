"""The database itself refuses to change what the audit trail holds; PostgreSQL refuses to delete from it as well.

On SQLite deleting stays possible for whoever opens the file: emptying a test's tables is deleting there.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_SQLITE = """
CREATE TRIGGER accounts_auditentry_fixed BEFORE UPDATE ON accounts_auditentry
BEGIN SELECT RAISE(ABORT, 'the audit trail is only ever added to'); END
"""
_POSTGRESQL = """
CREATE FUNCTION accounts_audit_fixed() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the audit trail is only ever added to'; END $$;
CREATE TRIGGER accounts_auditentry_fixed BEFORE UPDATE OR DELETE ON accounts_auditentry
FOR EACH ROW EXECUTE FUNCTION accounts_audit_fixed();
"""


def fix(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    editor.execute(_POSTGRESQL if editor.connection.vendor == "postgresql" else _SQLITE, None)


def free(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    on = "" if editor.connection.vendor == "sqlite" else " ON accounts_auditentry"
    editor.execute(f"DROP TRIGGER accounts_auditentry_fixed{on}", None)
    if on:
        editor.execute("DROP FUNCTION accounts_audit_fixed()", None)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_sign_ins_tokens_and_tries")]
    operations = [migrations.RunPython(fix, free)]
