"""Let indexes alone answer searches by figures, paths and retries, and exports of failures.

Every index is built beside the one that it replaces, without blocking writers. An interrupted build leaves an invalid
index of the same name, so each index is dropped before it is built.
"""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Func, Q, Value
from django.db.models.functions import Cast

CAUSES_AT_ANY_INDEX = Cast(
    Func(
        Cast("causes", models.TextField()),
        Value(r"\[[0-9]+\]"),
        Value("[]"),
        Value("g"),
        function="regexp_replace",
        output_field=models.TextField(),
    ),
    models.JSONField(),
)
LISTED_COLUMNS = (
    *("run", "config", "scenario", "cause", "state", "outcome", "position"),
    *("started_at", "duration_ms", "turns", "requests", "retries", "input_tokens", "output_tokens", "cost"),
)
TRIAL_INDEXES = (
    models.Index(fields=["id"], include=LISTED_COLUMNS, name="listed_trials"),
    GinIndex(
        OpClass(CAUSES_AT_ANY_INDEX, name="jsonb_path_ops"), name="causes_at_any_index", condition=~Q(("causes", []))
    ),
    GinIndex(
        OpClass("wrong_paths", name="jsonb_path_ops"), name="wrong_arguments", condition=~Q(("wrong_paths", []))
    ),
    models.Index(
        fields=["id"],
        include=(*LISTED_COLUMNS, "scenario_version", "category", "end"),
        name="failed_trials",
        condition=Q(("outcome__in", ["fail", "infra"])),
    ),
)
STEP_INDEX = models.Index(
    fields=["trial"],
    include=("attempt", "status", "error_code"),
    name="retry_steps",
    condition=Q(
        ("kind", "exchange"), Q(("attempt__gt", 1), ("ok", False), ("ok", None), ("status", None), _connector="OR")
    ),
)
INDEXES = (*(("trial", index) for index in TRIAL_INDEXES), ("step", STEP_INDEX))
OLD_INDEXES = (("trial", "listed"), ("trial", "found_causes"), ("step", "steps_with_retries"))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0053_own_servers_cost_nothing"),
    ]

    operations = [
        *(
            operation
            for model_name, index in INDEXES
            for operation in (
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
                AddIndexConcurrently(model_name=model_name, index=index),
            )
        ),
        *(RemoveIndexConcurrently(model_name=model_name, name=name) for model_name, name in OLD_INDEXES),
    ]
