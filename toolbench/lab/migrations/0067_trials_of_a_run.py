"""Let an index alone answer the list of trials of one run.

The index is built without blocking writers. An interrupted build leaves an invalid index of the same name, so the index
is dropped before it is built.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

LISTED_COLUMNS = (
    *("config", "scenario", "cause", "state", "outcome", "position", "started_at", "duration_ms"),
    *("turns", "requests", "retries", "input_tokens", "output_tokens", "cost"),
)
INDEX = models.Index(fields=["run", "id"], include=LISTED_COLUMNS, name="trials_of_run")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0066_case_of_launch_key"),
    ]

    operations = [
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX.name}", migrations.RunSQL.noop),
        AddIndexConcurrently(model_name="trial", index=INDEX),
    ]
