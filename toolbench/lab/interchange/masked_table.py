"""Masking of known secrets in tables that are exported."""

from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.metrics.export_table import StreamedTable


def mask_table(table: StreamedTable) -> StreamedTable:
    """Return a table whose title, notes, rows and times have known secrets masked.

    The values are masked, not the written file, so a file of any format stays valid. Each row is masked when it is
    read. The known secrets are loaded by this call.
    """
    masker = load_known_secrets().masker
    return StreamedTable(
        title=masker.mask_text(table.title),
        notes=masker.mask_value(table.notes),
        columns=table.columns,
        rows=map(masker.mask_value, table.rows),
        markdown_columns=table.markdown_columns,
        times=masker.mask_value(table.times),
    )
