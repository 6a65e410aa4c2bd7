"""How often a worker claimed a what-if, a re-judgement or an import."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0015_jobs_and_cells_that_failed"),
    ]

    operations = [
        migrations.AddField(
            model_name="replay",
            name="attempts",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
