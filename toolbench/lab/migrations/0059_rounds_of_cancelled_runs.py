"""End the rounds of undecided cells of cancelled runs, as cancelling a run does now.

Retrying or adding one trial of such a run would otherwise queue further rounds of all its undecided cells.
"""

from django.db import migrations

_END_ROUNDS = """
UPDATE lab_cell AS cell SET decided = 'cancelled' FROM lab_run AS run
WHERE run.id = cell.run_id AND run.state IN ('cancelling', 'cancelled') AND cell.error IS NOT NULL AND cell.decided = ''
"""


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0058_count_repeated_answers"),
    ]

    operations = [
        migrations.RunSQL(_END_ROUNDS, migrations.RunSQL.noop),
    ]
