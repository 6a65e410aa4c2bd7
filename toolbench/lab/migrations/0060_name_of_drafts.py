"""Rename users' sets of cases whose names only the playground and the import of BFCL give to their sets."""

from django.db import migrations

_RENAME = """
UPDATE lab_caseset SET name = name || ', cases of users ' || id
WHERE kind = 'own' AND name IN (
    'Playground (drafts)', 'BFCL simple_python', 'BFCL multiple', 'BFCL parallel', 'BFCL parallel_multiple',
    'BFCL live_simple', 'BFCL live_multiple', 'BFCL live_parallel', 'BFCL live_parallel_multiple',
    'BFCL multi_turn_base', 'BFCL multi_turn_miss_func', 'BFCL multi_turn_miss_param', 'BFCL multi_turn_long_context'
)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0059_rounds_of_cancelled_runs"),
    ]

    operations = [
        migrations.RunSQL(_RENAME, migrations.RunSQL.noop),
    ]
