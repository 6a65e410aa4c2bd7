"""Let an index answer searches for slow trials, such as `ms>20000`, which few of all trials match.

The index is built without blocking writers. An interrupted build leaves an invalid index of the same name, so the index
is dropped before it is built.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

INDEX = models.Index(fields=["duration_ms"], name="slow_trials", condition=models.Q(("duration_ms__isnull", False)))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0054_index_only_lists"),
    ]

    operations = [
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX.name}", migrations.RunSQL.noop),
        AddIndexConcurrently(model_name="trial", index=INDEX),
    ]
