"""PostgreSQL keeps the events in partitions by range of run id; version 7 ids are ordered by time, so a range is an age.

Everything starts in the default partition. Ids are compared as bytes, which is also what makes the key's index cheap.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_PARTITIONED = """
DROP TABLE runs_event;
CREATE TABLE runs_event (
    run_id varchar(36) COLLATE "C" NOT NULL,
    seq integer NOT NULL CHECK (seq >= 0),
    kind varchar(40) NOT NULL,
    turn integer CHECK (turn >= 0),
    call varchar(36),
    at timestamptz NOT NULL,
    ts timestamptz NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);
CREATE TABLE runs_event_default PARTITION OF runs_event DEFAULT;
"""


def partition(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        editor.execute(_PARTITIONED)


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]
    operations = [migrations.RunPython(partition, migrations.RunPython.noop)]
