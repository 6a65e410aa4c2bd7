"""Count repeated answers in cells.

Until its recount, a cell keeps the reading of earlier versions, which also took a trial without an answer, and equal
answers to different instances, for a repeat. Only cells at temperature 0 with this reading are recounted, since no
figure reads the number of other cells; theirs is counted when their trials change.
"""

from django.db import migrations

_COUNT_ANEW = """
UPDATE lab_cell SET stale = true, repeated_answers = passed + failed - deadline_failed - "distinct"
WHERE deterministic AND "distinct" > 0 AND "distinct" < passed + failed - deadline_failed
"""


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0057_repeated_answers"),
    ]

    operations = [
        migrations.RunSQL(_COUNT_ANEW, migrations.RunSQL.noop),
    ]
