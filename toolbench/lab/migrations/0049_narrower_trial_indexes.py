"""Leave out of the indexes of trials what no query asks for, so that storing a trial writes fewer of them.

An interrupted build leaves an invalid index of the same name, so each index is dropped before it is built.
"""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

NEW_INDEXES = (
    models.Index(fields=["provider"], name="running_trials", condition=models.Q(("state", "running"))),
    models.Index(fields=["run", "signature"], name="signatures", condition=~models.Q(("signature", ""))),
    models.Index(fields=["run", "finished_at"], name="ended", condition=models.Q(("finished_at__isnull", False))),
    GinIndex(OpClass("causes", name="jsonb_path_ops"), name="found_causes", condition=~models.Q(("causes", []))),
)
# Django's name of the index of the foreign key.
STEP_INDEX = "lab_step_trial_id_10eedc5c"
OLD_INDEXES = ("leased", "lab_trial_run_id_30d07c_idx", "pace", "by_taxonomy", "seen_causes")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("lab", "0048_gateway_trace_steps"),
    ]

    operations = [
        *(
            operation
            for index in NEW_INDEXES
            for operation in (
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
                AddIndexConcurrently(model_name="trial", index=index),
            )
        ),
        *(RemoveIndexConcurrently(model_name="trial", name=name) for name in OLD_INDEXES),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {STEP_INDEX}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {STEP_INDEX} ON lab_step (trial_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="step",
                    name="trial",
                    field=models.ForeignKey(
                        db_index=False, on_delete=models.deletion.CASCADE, related_name="steps", to="lab.trial"
                    ),
                ),
            ],
        ),
    ]
