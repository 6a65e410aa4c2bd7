"""Index the gateway traces whose search text has to be written.

An interrupted build leaves an invalid index of the same name, so the index is dropped before it is built.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

INDEX = models.Index(fields=["at", "id"], name="stale_trace_texts", condition=models.Q(("text_stale", True)))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0051_gateway_search_texts"),
    ]

    operations = [
        migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX.name}", migrations.RunSQL.noop),
        AddIndexConcurrently(model_name="gatewaytrace", index=INDEX),
    ]
