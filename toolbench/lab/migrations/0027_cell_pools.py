"""Store sums over the cells of ended runs; recompute every cell, since cells have new columns of costs."""

import django.contrib.postgres.fields
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0026_seen_causes"),
    ]

    operations = [
        migrations.CreateModel(
            name="PoolState",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.UUIDField(default=uuid.uuid4)),
            ],
        ),
        migrations.AddField(
            model_name="cell",
            name="costs_known",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="cell",
            name="costs_reported",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="cell",
            name="delivered_dollars",
            field=models.FloatField(default=0),
        ),
        migrations.AddField(
            model_name="cell",
            name="known_dollars",
            field=models.FloatField(default=0),
        ),
        migrations.AddField(
            model_name="cell",
            name="squared_dollars",
            field=models.FloatField(default=0),
        ),
        migrations.AddField(
            model_name="run",
            name="pooled",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="CellPool",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("simulated", models.BooleanField()),
                ("imported", models.BooleanField()),
                ("confirming", models.BooleanField()),
                ("provider_name", models.CharField(max_length=80)),
                ("provider_kind", models.CharField(max_length=16)),
                ("model_name", models.CharField(max_length=200)),
                ("profile", models.CharField(max_length=80)),
                ("strategy", models.CharField(max_length=80)),
                ("method", models.CharField(max_length=16)),
                ("examples", models.CharField(blank=True, max_length=80)),
                ("tool_use_mode", models.CharField(max_length=10)),
                ("stream", models.BooleanField()),
                ("policy_hash", models.CharField(max_length=64)),
                ("instance_kind", models.CharField(max_length=8)),
                ("scenario_group", models.CharField(max_length=20)),
                ("control", models.BooleanField()),
                ("scenario", models.CharField(max_length=60)),
                ("scenario_version", models.PositiveSmallIntegerField()),
                (
                    "config_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("cell_ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("run_ids", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                (
                    "engines",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(blank=True, max_length=20), size=None
                    ),
                ),
                (
                    "purposes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(blank=True, max_length=24), size=None
                    ),
                ),
                (
                    "canonicals",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(blank=True, max_length=200), size=None
                    ),
                ),
                (
                    "prompts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(blank=True, max_length=40), size=None
                    ),
                ),
                ("mixed_upstreams", models.BooleanField()),
                ("first", models.DateTimeField()),
                ("last", models.DateTimeField()),
                ("all_durations", models.BinaryField(null=True)),
                ("all_first_tokens", models.BinaryField(null=True)),
                ("repeated", models.JSONField(null=True)),
                ("sum_cells", models.PositiveIntegerField()),
                ("sum_repeating", models.PositiveIntegerField()),
                ("sum_unpriced", models.PositiveIntegerField()),
                ("sum_set_aside", models.PositiveIntegerField()),
                ("sum_error", models.FloatField(null=True)),
                ("sum_cost", models.FloatField(null=True)),
                ("sum_calls", models.BigIntegerField()),
                ("sum_valid_calls", models.BigIntegerField()),
                ("sum_structured_answers", models.BigIntegerField()),
                ("sum_calling_answers", models.BigIntegerField()),
                ("sum_parse_error_turns", models.BigIntegerField()),
                ("sum_calling_turns", models.BigIntegerField()),
                ("sum_repaired_calls", models.BigIntegerField()),
                ("sum_parse_error_ends", models.BigIntegerField()),
                ("sum_fallback_turns", models.BigIntegerField()),
                ("sum_asked_again", models.BigIntegerField()),
                ("sum_failed_calls", models.BigIntegerField()),
                ("sum_missing_calls", models.BigIntegerField()),
                ("sum_type_calls", models.BigIntegerField()),
                ("sum_enum_calls", models.BigIntegerField()),
                ("sum_range_calls", models.BigIntegerField()),
                ("sum_extra_calls", models.BigIntegerField()),
                ("sum_ignored_calls", models.BigIntegerField()),
                ("sum_answered_turns", models.BigIntegerField()),
                ("sum_good_turns", models.BigIntegerField()),
                ("sum_final_answers", models.BigIntegerField()),
                ("sum_empty_finals", models.BigIntegerField()),
                ("sum_arguments_asked", models.BigIntegerField()),
                ("sum_arguments_right", models.BigIntegerField()),
                ("sum_queued", models.BigIntegerField()),
                ("sum_running", models.BigIntegerField()),
                ("sum_passed", models.BigIntegerField()),
                ("sum_failed", models.BigIntegerField()),
                ("sum_infra", models.BigIntegerField()),
                ("sum_not_applicable", models.BigIntegerField()),
                ("sum_cancelled", models.BigIntegerField()),
                ("sum_deadline_failed", models.BigIntegerField()),
                ("sum_parity_passed", models.BigIntegerField()),
                ("sum_parity_judged", models.BigIntegerField()),
                ("sum_behaviour_seen", models.BigIntegerField()),
                ("sum_behaviour_asked", models.BigIntegerField()),
                ("sum_distinct", models.BigIntegerField()),
                ("sum_first_attempt_passed", models.BigIntegerField()),
                ("sum_error_trials", models.BigIntegerField()),
                ("sum_recovered_trials", models.BigIntegerField()),
                ("sum_called_rightly", models.BigIntegerField()),
                ("sum_called_needlessly", models.BigIntegerField()),
                ("sum_call_missed", models.BigIntegerField()),
                ("sum_rightly_silent", models.BigIntegerField()),
                ("sum_added_by_hand", models.BigIntegerField()),
                ("sum_errors_retried", models.BigIntegerField()),
                ("sum_late_passes", models.BigIntegerField()),
                ("sum_saturated", models.BigIntegerField()),
                ("sum_requests", models.BigIntegerField()),
                ("sum_retries", models.BigIntegerField()),
                ("sum_input_tokens", models.DecimalField(decimal_places=0, max_digits=40)),
                ("sum_output_tokens", models.DecimalField(decimal_places=0, max_digits=40)),
                ("sum_cached_tokens", models.DecimalField(decimal_places=0, max_digits=40)),
                ("sum_reasoning_tokens", models.DecimalField(decimal_places=0, max_digits=40)),
                ("sum_costs_reported", models.BigIntegerField()),
                ("sum_costs_known", models.BigIntegerField()),
                ("sum_known_dollars", models.FloatField()),
                ("sum_squared_dollars", models.FloatField()),
                ("sum_delivered_dollars", models.FloatField()),
                ("sum_answers_429", models.BigIntegerField()),
                ("sum_answers_5xx", models.BigIntegerField()),
                ("sum_trials_429", models.BigIntegerField()),
                ("sum_trials_5xx", models.BigIntegerField()),
                ("sum_trials_retried", models.BigIntegerField()),
                ("sum_backoff_ms", models.FloatField()),
                ("sum_trials_without_status", models.BigIntegerField()),
            ],
            options={
                "indexes": [models.Index(fields=["provider_name", "model_name"], name="pools_of_model")],
            },
        ),
        migrations.CreateModel(
            name="RunChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="lab.run"
                    ),
                ),
            ],
        ),
        migrations.RunSQL("UPDATE lab_cell SET stale = true WHERE passed + failed + infra > 0", migrations.RunSQL.noop),
    ]
