from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0016_replay_attempts"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="server_losses",
            field=models.PositiveSmallIntegerField(default=0),
        ),
    ]
