"""Index the causes that were seen in trials, for the filter `seen`."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0025_accounts"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="trial",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.indexes.OpClass("causes", name="jsonb_path_ops"), name="seen_causes"
            ),
        ),
    ]
