"""Give each trial a search text. The sweep writes those of trials that are stored already, longest ended first."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0023_awaits_probe"),
    ]

    operations = [
        TrigramExtension(),
        migrations.CreateModel(
            name="TrialText",
            fields=[
                (
                    "trial",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="search_text",
                        serialize=False,
                        to="lab.trial",
                    ),
                ),
                ("text", models.TextField()),
                ("words", django.contrib.postgres.search.SearchVectorField()),
            ],
        ),
        migrations.AddField(
            model_name="trial",
            name="text_stale",
            field=models.BooleanField(default=True),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(
                fields=["finished_at", "id"],
                name="stale_texts",
                condition=models.Q(text_stale=True, state="done"),
            ),
        ),
        migrations.AddIndex(
            model_name="trialtext",
            index=django.contrib.postgres.indexes.GinIndex(fields=["words"], name="search_words"),
        ),
        migrations.AddIndex(
            model_name="trialtext",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.indexes.OpClass("text", name="gin_trgm_ops"), name="search_parts"
            ),
        ),
    ]
