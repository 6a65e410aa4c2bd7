"""Have search texts written anew that may lack the name of a called tool: those that were cut off, and removed ones."""

from django.db import migrations

_MARK_STALE = """
UPDATE lab_trial SET text_stale = true
WHERE bodies_removed_at IS NOT NULL OR id IN (SELECT trial_id FROM lab_trialtext WHERE char_length(text) >= 4000)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0060_name_of_drafts"),
    ]

    operations = [
        migrations.RunSQL(_MARK_STALE, migrations.RunSQL.noop),
    ]
