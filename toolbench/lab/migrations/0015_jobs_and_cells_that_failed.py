"""Failures of background jobs, and cells whose sums cannot be computed. A figure outside the new range is blanked and
its cell marked stale: it is derived anew, and set aside where a trial still says so."""

from django.db import migrations, models
from django.db.models import Q

FIGURES = ("cost", "first_token_p50_ms", "p50_ms", "p95_ms")
LARGEST = 1e12


def in_range() -> Q:
    found = Q()
    for name in FIGURES:
        found &= Q((name, None)) | Q((f"{name}__gte", 0), (f"{name}__lte", LARGEST))
    return found


def blanked(name: str) -> str:
    return f"UPDATE lab_cell SET {name} = NULL, stale = true WHERE {name} NOT BETWEEN 0 AND {LARGEST}"


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0014_implausible_figures"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobFailure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job", models.CharField(max_length=80)),
                ("provider_name", models.CharField(blank=True, max_length=80)),
                ("error", models.CharField(max_length=80)),
                ("place", models.CharField(blank=True, max_length=200)),
                ("count", models.PositiveIntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={"ordering": ["-last_at"]},
        ),
        migrations.AddConstraint(
            model_name="jobfailure",
            constraint=models.UniqueConstraint(
                fields=("job", "provider_name", "error"), name="one_row_per_job_failure"
            ),
        ),
        migrations.AddField(
            model_name="cell",
            name="compute_error",
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddIndex(
            model_name="cell",
            index=models.Index(fields=["id"], name="cells_set_aside", condition=~Q(compute_error="")),
        ),
        # Deferred checks of the rows that change would keep the table from being altered.
        migrations.RunSQL(
            ["SET CONSTRAINTS ALL IMMEDIATE", *map(blanked, FIGURES), "SET CONSTRAINTS ALL DEFERRED"],
            migrations.RunSQL.noop,
        ),
        migrations.AddConstraint(
            model_name="cell",
            constraint=models.CheckConstraint(condition=in_range(), name="cell_figures_in_range"),
        ),
    ]
