"""Give each gateway trace a search text. The sweep writes those of traces that are stored already, oldest first."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0050_wrong_argument_paths"),
    ]

    operations = [
        migrations.CreateModel(
            name="GatewayTraceText",
            fields=[
                (
                    "trace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="search_text",
                        serialize=False,
                        to="lab.gatewaytrace",
                    ),
                ),
                ("text", models.TextField()),
                ("words", django.contrib.postgres.search.SearchVectorField()),
            ],
        ),
        migrations.AddField(
            model_name="gatewaytrace",
            name="text_stale",
            field=models.BooleanField(default=True),
        ),
        migrations.AddIndex(
            model_name="gatewaytracetext",
            index=django.contrib.postgres.indexes.GinIndex(fields=["words"], name="search_trace_words"),
        ),
        migrations.AddIndex(
            model_name="gatewaytracetext",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.indexes.OpClass("text", name="gin_trgm_ops"), name="search_trace_parts"
            ),
        ),
    ]
