"""Keep versions of sampling profiles, presets and settings of models; archive deleted profiles and presets."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0029_schedules"),
    ]

    operations = [
        migrations.AddField(
            model_name="preset",
            name="archived_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="samplingprofile",
            name="archived_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="LibraryVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.JSONField()),
                ("username", models.CharField(blank=True, max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "profile",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="lab.samplingprofile",
                    ),
                ),
                (
                    "preset",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="lab.preset",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="lab.model",
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
                "constraints": [
                    models.UniqueConstraint(fields=["profile", "number"], name="one_version_of_a_profile"),
                    models.UniqueConstraint(fields=["preset", "number"], name="one_version_of_a_preset"),
                    models.UniqueConstraint(fields=["model", "number"], name="one_version_of_a_model"),
                    models.CheckConstraint(
                        condition=models.Q(profile__isnull=False, preset=None, model=None)
                        | models.Q(profile=None, preset__isnull=False, model=None)
                        | models.Q(profile=None, preset=None, model__isnull=False),
                        name="version_of_one_entry",
                    ),
                ],
            },
        ),
    ]
