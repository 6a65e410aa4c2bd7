"""A table to take away as CSV, JSON or Markdown."""

from dataclasses import dataclass

from toolbench.engine.types import JsonObject

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ExportTable:
    """`rows` have one value per column; None is what is not known, never 0. `brief` are the columns of a form that is
    read and not computed with, () for all. `times` has quantiles of what the rows are single trials of; JSON only."""

    title: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    brief: tuple[str, ...] = ()
    times: tuple[JsonObject, ...] = ()
