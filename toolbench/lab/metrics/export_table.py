"""Tables of pages that can be exported as CSV, JSON or Markdown."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.engine.types import JsonObject

Value = str | int | float | bool | None  # of one column in one row


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """Table to export, with rows that may be too many for memory.

    Attributes:
        notes: sentences about the whole table.
        columns: names of the columns.
        rows: for each row, one value for each column; None if the value is unknown. The iterable may be readable only
            once.
        markdown_columns: names of the columns that an export to Markdown has; () for all.
        times: for each group of rows, a JSON object with the quantiles of its times. Only an export to JSON has them.
    """

    title: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Iterable[tuple[Value, ...]]
    markdown_columns: tuple[str, ...] = ()
    times: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportTable(StreamedTable):
    """Table to export, with all rows in memory."""

    rows: tuple[tuple[Value, ...], ...]
