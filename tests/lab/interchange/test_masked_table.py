"""Masking of known secrets in tables that are exported."""

from collections.abc import Iterator

import pytest

from tests.factories import make_provider
from toolbench.lab.interchange.masked_table import mask_table
from toolbench.lab.metrics.export_table import StreamedTable, Value

pytestmark = pytest.mark.django_db
SECRET = "sk-planted-0123456789"
MASKED = "*" * len(SECRET)


@pytest.fixture(autouse=True)
def _provider_with_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", SECRET)
    make_provider("Planted", key_source="environment", key_env="PLANTED_KEY")


def test_mask_table_masks_texts_and_keeps_other_values() -> None:
    table = StreamedTable(
        f"of {SECRET}", (f"by {SECRET}",), ("text", "n"), [(f"a {SECRET}", 1), (None, 0.5)], ("n",), ({"name": SECRET},)
    )
    masked = mask_table(table)
    assert (masked.title, masked.notes, masked.times) == (f"of {MASKED}", (f"by {MASKED}",), ({"name": MASKED},))
    assert (masked.columns, masked.markdown_columns) == (table.columns, table.markdown_columns)
    assert list(masked.rows) == [(f"a {MASKED}", 1), (None, 0.5)]


def test_mask_table_reads_one_row_at_a_time() -> None:
    def iter_rows() -> Iterator[tuple[Value, ...]]:
        yield (SECRET,)
        raise AssertionError("a row was read before it was needed")

    assert next(iter(mask_table(StreamedTable("", (), ("text",), iter_rows())).rows)) == (MASKED,)
