"""Include reopened runs in the index of runs that alert rules have not checked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0064_price_lists"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="run",
            name="runs_to_check",
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(
                    ("state__in", ["finished", "cancelled"]),
                    models.Q(
                        ("alerts_checked_at", None), ("alerts_checked_at__lt", models.F("finished_at")), _connector="OR"
                    ),
                ),
                fields=["id"],
                name="runs_to_check",
            ),
        ),
    ]
