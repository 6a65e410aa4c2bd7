"""Label of the rule for trials that neither passed nor failed. It changes no column."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0068_claiming_worker"),
    ]

    operations = [
        migrations.AlterField(
            model_name="retentionrule",
            name="kind",
            field=models.CharField(
                choices=[
                    ("deleted", "Trials of deleted runs"),
                    ("simulated", "Trials of simulated models"),
                    ("imported", "Trials of imported runs"),
                    ("passed", "Passed trials"),
                    ("failed", "Failed trials"),
                    ("other", "Infrastructure errors, cancelled and not applicable trials"),
                ],
                max_length=12,
                unique=True,
            ),
        ),
    ]
