"""Index gateway traces by time, and store the last batch of costs of each gateway process."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0044_life_of_data"),
    ]

    operations = [
        migrations.CreateModel(
            name="SpendingWriter",
            fields=[
                ("key", models.UUIDField(primary_key=True, serialize=False)),
                ("last_batch", models.PositiveBigIntegerField()),
                ("stored_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={"ordering": ["-stored_at"]},
        ),
        migrations.AddIndex(
            model_name="gatewaytrace",
            index=models.Index(fields=["at"], name="gateway_traces_by_age"),
        ),
    ]
