"""Index what lists of trials read, without blocking writers, and drop two indexes that other indexes cover.

An interrupted build leaves an invalid index of the same name, so each index is dropped before it is built.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0042_trace_traffic_line"),
    ]

    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS listed", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="trial",
            index=models.Index(
                fields=["id"],
                include=("run", "config", "scenario", "cause", "state", "outcome", "position"),
                name="listed",
            ),
        ),
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS classes", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="trial",
            index=models.Index(
                fields=["failure_class", "id"], name="classes", condition=~models.Q(("failure_class", ""))
            ),
        ),
        migrations.AlterField(
            model_name="trial",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=models.deletion.CASCADE, related_name="trials", to="lab.run"
            ),
        ),
        migrations.AlterField(
            model_name="trial",
            name="cell",
            field=models.ForeignKey(
                db_index=False, on_delete=models.deletion.CASCADE, related_name="trials", to="lab.cell"
            ),
        ),
    ]
