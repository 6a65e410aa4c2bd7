"""Mark the cells whose cost was unknown only because their own server has no price: it is 0 now."""

from typing import Any

from django.db import migrations

from toolbench.lab.paid_requests import FREE_KINDS, is_private_address


def mark_cells(apps: Any, schema_editor: Any) -> None:
    providers = apps.get_model("lab", "Provider").objects.values_list("pk", "kind", "base_url")
    free = [pk for pk, kind, url in providers if kind in FREE_KINDS or is_private_address(url)]
    apps.get_model("lab", "Cell").objects.filter(config__provider__in=free, cost=None).update(stale=True)


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0052_stale_trace_texts"),
    ]

    operations = [
        migrations.RunPython(mark_cells, migrations.RunPython.noop),
    ]
