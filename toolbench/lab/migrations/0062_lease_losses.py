"""Count the lost leases of a trial, so that a trial that kills its worker ends."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0061_tool_names_in_search_texts"),
    ]

    operations = [
        migrations.AddField(model_name="trial", name="lease_losses", field=models.PositiveSmallIntegerField(default=0)),
    ]
