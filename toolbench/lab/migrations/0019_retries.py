"""Count answers of 429 and 5xx, trials that had them and back-off in cells. A cell whose steps may say something of
them is counted anew later, and says until then that its figures are unknown; of all others they are known to be 0.
Nothing has to be undone on the way back."""

from django.db import migrations, models

_COUNT_ANEW = """
UPDATE lab_cell AS cell SET stale = true, trials_without_status = least(cell.requests, 1)
WHERE EXISTS (
    SELECT 1 FROM lab_trial AS trial JOIN lab_step AS step ON step.trial_id = trial.id
    WHERE trial.cell_id = cell.id AND step.kind = 'exchange'
        AND (step.attempt > 1 OR NOT step.ok OR step.ok IS NULL OR step.status IS NULL)
)
"""
_COUNTS = ("answers_429", "answers_5xx", "trials_429", "trials_5xx", "trials_retried", "trials_without_status")


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0018_order_statistics"),
    ]

    operations = [
        *(
            migrations.AddField(model_name="cell", name=name, field=models.PositiveIntegerField(default=0))
            for name in _COUNTS
        ),
        migrations.AddField(model_name="cell", name="backoff_ms", field=models.FloatField(default=0)),
        migrations.RunSQL(_COUNT_ANEW, migrations.RunSQL.noop),
    ]
