"""Add the counter of repeated answers to cells; 0058 counts it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0056_settings_digest"),
    ]

    operations = [
        migrations.AddField(model_name="cell", name="repeated_answers", field=models.PositiveIntegerField(default=0)),
        migrations.AddField(
            model_name="cellpool",
            name="sum_repeated_answers",
            field=models.BigIntegerField(default=0),
            preserve_default=False,
        ),
    ]
