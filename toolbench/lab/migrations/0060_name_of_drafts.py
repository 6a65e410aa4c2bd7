"""Rename users' sets of cases that have the name of the playground's set, which can be created only by the playground."""

from django.db import migrations

_RENAME = """
UPDATE lab_caseset SET name = 'Playground (drafts), cases of users ' || id
WHERE name = 'Playground (drafts)' AND kind = 'own'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0059_rounds_of_cancelled_runs"),
    ]

    operations = [
        migrations.RunSQL(_RENAME, migrations.RunSQL.noop),
    ]
