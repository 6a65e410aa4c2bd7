"""A table for export as CSV, JSON or Markdown."""

from dataclasses import dataclass

from toolbench.engine.types import JsonObject

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ExportTable:
    """Columns and rows of an export.

    Attributes:
        rows: one value for each column; None is unknown, never 0.
        brief: the columns of the short form for readers; () for all.
        times: quantiles of the trials that the rows are; JSON only.
    """

    title: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    brief: tuple[str, ...] = ()
    times: tuple[JsonObject, ...] = ()
