"""Table that can be exported as CSV, JSON or Markdown."""

from dataclasses import dataclass

from toolbench.engine.types import JsonObject

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ExportTable:
    """Columns and rows of an export.

    Attributes:
        notes: sentences about the whole table.
        rows: one value for each column; None if the value is unknown.
        brief: names of the columns of the Markdown form; () for all.
        times: quantiles of times over the rows, which only JSON has.
    """

    title: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    brief: tuple[str, ...] = ()
    times: tuple[JsonObject, ...] = ()
