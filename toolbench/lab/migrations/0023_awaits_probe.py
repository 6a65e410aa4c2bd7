"""Let a configuration say by itself that it waits for a probe; until now only the method auto could wait."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0022_refused_parameters"),
    ]

    operations = [
        migrations.AddField(
            model_name="runconfig",
            name="awaits_probe",
            field=models.BooleanField(default=False),
        ),
        migrations.RunSQL(
            "UPDATE lab_runconfig SET awaits_probe = true WHERE method = 'auto'", migrations.RunSQL.noop
        ),
    ]
