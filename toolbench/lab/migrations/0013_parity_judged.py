"""How many trials the case study has a rule for. Counts are derived, so they are derived anew; nothing is lost, and
nothing has to be undone on the way back."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0012_costs_by_one_rule"),
    ]

    operations = [
        migrations.AddField(
            model_name="cell",
            name="parity_judged",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.RunSQL("UPDATE lab_cell SET stale = true", migrations.RunSQL.noop),
    ]
