import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0007_cases"),
        ("lab", "0007_imports"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DecisionRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=200)),
                ("note", models.TextField(blank=True)),
                ("who", models.CharField(blank=True, max_length=150)),
                ("simulated", models.BooleanField(default=False)),
                ("query", models.TextField(blank=True)),
                ("rule", models.JSONField(default=dict)),
                ("group", models.CharField(blank=True, max_length=20)),
                ("verdict", models.CharField(max_length=12)),
                ("sentence", models.TextField()),
                ("leader", models.CharField(blank=True, max_length=600)),
                ("chosen_among", models.PositiveIntegerField(default=0)),
                ("evidence", models.JSONField(default=list)),
                ("engine_version", models.CharField(blank=True, max_length=20)),
                ("confirmed", models.JSONField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "confirmation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="lab.run",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
    ]
