"""Table that can be exported as CSV, JSON or Markdown."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolbench.engine.types import JsonObject

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """Columns of an export, with rows that may be too many for memory.

    Attributes:
        notes: sentences about the whole table.
        rows: one value for each column; None if the value is unknown. They can be read only once.
        brief: names of the columns of the Markdown form; () for all.
        times: quantiles of times over the rows, which only JSON has.
    """

    title: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Iterable[tuple[Value, ...]]
    brief: tuple[str, ...] = ()
    times: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportTable(StreamedTable):
    """Columns and rows of an export, all in memory."""

    rows: tuple[tuple[Value, ...], ...]
