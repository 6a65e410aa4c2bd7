"""Add the counter of the tokens of tried trials to cells; 0063_count_tried_trials counts it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0062_lease_losses"),
    ]

    operations = [
        migrations.AddField(model_name="cell", name="tried_tokens", field=models.PositiveBigIntegerField(default=0)),
        migrations.AddField(
            model_name="cellpool",
            name="sum_tried_tokens",
            field=models.DecimalField(decimal_places=0, default=0, max_digits=40),
            preserve_default=False,
        ),
    ]
