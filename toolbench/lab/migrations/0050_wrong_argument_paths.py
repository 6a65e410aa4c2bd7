"""Store for each trial the paths at which valid calls differed from the expected ones."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0049_narrower_trial_indexes'),
    ]

    operations = [
        migrations.AddField(
            model_name='trial',
            name='wrong_paths',
            field=models.JSONField(default=list),
        ),
    ]
