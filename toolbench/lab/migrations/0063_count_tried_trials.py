"""Mark all cells, since their tokens and calls are now those of trials that passed, failed or had an infrastructure error.

Until its recount, a cell keeps the sums of earlier versions, which included other trials.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0063_tried_tokens"),
    ]

    operations = [
        migrations.RunSQL("UPDATE lab_cell SET stale = true WHERE NOT stale", migrations.RunSQL.noop),
    ]
