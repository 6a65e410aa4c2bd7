"""Quantiles of cells become order statistics, and the sorted times behind them are stored, so that quantiles of pooled
cells can be computed exactly. Both are derived from the trials here. A cell that is set aside keeps its unknown figures.

On the way back the figures stay order statistics; a recomputation by the older version replaces them."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

LARGEST = 1e12

_ANSWERED = """
SELECT trial.cell_id, trial.duration_ms, trial.first_token_ms
FROM lab_trial AS trial JOIN lab_cell AS cell ON cell.id = trial.cell_id
WHERE (trial.outcome = 'pass' OR (trial.outcome = 'fail' AND trial."end" <> 'DEADLINE_EXCEEDED'))
    AND cell.compute_error = ''
"""
_FIGURES = f"""
WITH answered AS ({_ANSWERED}), derived AS (
    SELECT cell_id, percentile_disc(0.5) WITHIN GROUP (ORDER BY first_token_ms) AS first_token_p50_ms,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) AS p50_ms,
        percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95_ms
    FROM answered GROUP BY cell_id
)
UPDATE lab_cell AS cell SET first_token_p50_ms = derived.first_token_p50_ms, p50_ms = derived.p50_ms,
    p95_ms = derived.p95_ms
FROM derived WHERE cell.id = derived.cell_id
"""
_TIMES = f"""
WITH answered AS ({_ANSWERED})
INSERT INTO lab_celltimes (cell_id, durations, first_tokens, longest_ms)
SELECT cell_id, coalesce(string_agg(float8send(duration_ms), ''::bytea ORDER BY duration_ms), ''::bytea),
    coalesce(string_agg(float8send(first_token_ms), ''::bytea ORDER BY first_token_ms), ''::bytea),
    max(greatest(duration_ms, first_token_ms))
FROM answered GROUP BY cell_id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0017_server_losses"),
    ]

    operations = [
        migrations.CreateModel(
            name="CellTimes",
            fields=[
                (
                    "cell",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="times",
                        serialize=False,
                        to="lab.cell",
                    ),
                ),
                ("durations", models.BinaryField(default=b"")),
                ("first_tokens", models.BinaryField(default=b"")),
                ("longest_ms", models.FloatField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("longest_ms", None)) | Q(("longest_ms__gte", 0), ("longest_ms__lte", LARGEST)),
                        name="cell_times_in_range",
                    )
                ]
            },
        ),
        # Deferred checks of the rows that change would keep the tables from being altered.
        migrations.RunSQL(
            ["SET CONSTRAINTS ALL IMMEDIATE", _FIGURES, _TIMES, "SET CONSTRAINTS ALL DEFERRED"],
            migrations.RunSQL.noop,
        ),
    ]
