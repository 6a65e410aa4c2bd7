"""Adds OpenAI's Responses to the wire formats of a provider."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0037_gateway"),
    ]

    operations = [
        migrations.AlterField(
            model_name="provider",
            name="wire",
            field=models.CharField(
                choices=[
                    ("chat", "OpenAI chat completions"),
                    ("anthropic", "Anthropic Messages"),
                    ("responses", "OpenAI Responses"),
                ],
                default="chat",
                max_length=16,
            ),
        ),
    ]
