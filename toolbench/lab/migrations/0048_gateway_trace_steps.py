"""Add the steps of gateway traces."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0047_adaptive_concurrency"),
    ]

    operations = [
        migrations.AddField(
            model_name="gatewaytrace",
            name="steps",
            field=models.BinaryField(null=True),
        ),
    ]
