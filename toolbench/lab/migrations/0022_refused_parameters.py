import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0020_steps_with_retries"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="left_out",
            field=models.JSONField(default=list),
        ),
        migrations.CreateModel(
            name="RefusedParameter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("model_name", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=60)),
                ("why", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="lab.provider"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="lab.run"
                    ),
                ),
                (
                    "trial",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="lab.trial"
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["provider", "model_name"], name="refused_by_model")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "provider", "model_name", "name"), name="one_refusal_per_run"
                    )
                ],
            },
        ),
    ]
