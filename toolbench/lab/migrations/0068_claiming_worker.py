"""Table of the workers that claim trials of a provider at the same time."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0067_trials_of_a_run"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClaimingWorker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("worker", models.CharField(max_length=120)),
                ("seen_at", models.DateTimeField()),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="lab.provider"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("provider", "worker"), name="one_row_per_claiming_worker")
                ],
            },
        ),
    ]
