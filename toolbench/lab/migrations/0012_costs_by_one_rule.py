"""What a cell cost follows one rule now: unknown where that of one trial is, list prices where nobody named it. Counts
are derived, so they are derived anew; nothing is lost, and nothing has to be undone on the way back."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0011_errors_retried"),
    ]

    operations = [
        migrations.RunSQL("UPDATE lab_cell SET stale = true", migrations.RunSQL.noop),
    ]
