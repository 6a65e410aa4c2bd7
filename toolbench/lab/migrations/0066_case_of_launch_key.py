"""Remember the test case that a request with a launch key saved."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0065_index_of_unchecked_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="launchkey",
            name="case",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="lab.case"
            ),
        ),
    ]
