from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0015_jobs_and_cells_that_failed"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="server_losses",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
