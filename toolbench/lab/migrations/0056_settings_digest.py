"""Add the digest of a what-if's settings. Results without one are computed again when their page is next opened."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0055_slow_trials"),
    ]

    operations = [
        migrations.AddField(
            model_name="replay",
            name="settings_digest",
            field=models.CharField(blank=True, default="", max_length=64),
            preserve_default=False,
        ),
    ]
