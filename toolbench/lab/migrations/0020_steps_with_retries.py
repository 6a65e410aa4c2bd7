"""Index the steps of retries and errors while others go on writing. An index that an interrupted upgrade left half built
is built anew."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0019_retries"),
    ]

    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS steps_with_retries", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="step",
            index=models.Index(
                fields=["trial"],
                name="steps_with_retries",
                condition=models.Q(
                    ("kind", "exchange"),
                    models.Q(("attempt__gt", 1), ("ok", False), ("ok", None), ("status", None), _connector="OR"),
                ),
            ),
        ),
    ]
