"""Keep a person's price of a model, and freeze it in the configurations of runs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0030_library"),
    ]

    operations = [
        migrations.AddField(
            model_name="model",
            name="price",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="runconfig",
            name="price",
            field=models.JSONField(default=dict),
        ),
    ]
