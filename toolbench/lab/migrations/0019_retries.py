"""Count answers of 429 and 5xx, trials that had them and back-off in cells, from the steps that are stored. Until a cell
is counted anew its figures are unknown, never 0. Nothing has to be undone on the way back."""

from django.db import migrations, models

_COUNT_ANEW = "UPDATE lab_cell SET stale = true, trials_without_status = least(requests, 1)"
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
        migrations.AddIndex(
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
        migrations.RunSQL(_COUNT_ANEW, migrations.RunSQL.noop),
    ]
