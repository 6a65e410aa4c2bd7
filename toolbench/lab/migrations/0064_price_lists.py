"""Add the table of list prices. The next load of the built-in data fills it and marks cells with list prices."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0063_count_tried_trials"),
    ]

    operations = [
        migrations.CreateModel(
            name="PriceList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("template", models.CharField(max_length=40, unique=True)),
                ("prices", models.JSONField(default=dict)),
            ],
        ),
    ]
