"""Columns, heads and cells of the trial list, and its export."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import MAX_COUNTED_TRIALS, TrialRow, list_all_rows

TrialValue = str | int | float | bool | datetime | None
_DEFAULT_COLUMNS = (
    *("outcome", "model", "scenario", "why", "path", "expected", "got"),
    *("turns", "retries", "tokens", "time", "started"),
)
CALL_COLUMNS = {"expected", "got"}
# Beginning of a sentence, such as "Turn 2, parsed call 1: ".
_PLACE = re.compile(r"^Turn \d+(?:, parsed call \d+)?: ")


@dataclass(frozen=True, slots=True)
class TrialColumn:
    """A column of the trial list.

    Attributes:
        kind: display of the cells: mark, text, sentence, code, path, number, seconds or moment.
        export: name of the column in files.
        read: returns the value of a row.
        sorts: (sort order, value of aria-sort) of a first and of a second click; () if the column does not sort.
        title: returns the tooltip of a cell; with None, a text is its own tooltip, except for the kind mark.
        shorten: returns a shorter form of a text for the cell; None to show the value.
    """

    name: str
    label: str
    kind: str
    export: str
    read: Callable[[TrialRow], TrialValue]
    sorts: tuple[tuple[str, str], ...] = ()
    title: Callable[[TrialRow], str] | None = None
    shorten: Callable[[str], str] | None = None

    @property
    def css_class(self) -> str:
        """Return the CSS classes of head and cells; numbers and times are aligned to the right."""
        return f"col-{self.name} num" if self.kind in ("number", "seconds", "moment") else f"col-{self.name}"


def _sort_down(name: str, second: str = "") -> tuple[tuple[str, str], ...]:
    """Return `TrialColumn.sorts` of a column whose first click sorts the largest value first.

    Args:
        name: sort order of the first click.
        second: sort order of the second click; "" for `name` with "-" before it.
    """
    return ((name, "descending"), (second or f"-{name}", "ascending"))


def _sort_up(name: str) -> tuple[tuple[str, str], ...]:
    """Return `TrialColumn.sorts` of a column whose first click sorts the smallest value first."""
    return ((name, "ascending"), (f"-{name}", "descending"))


def _omit_place(sentence: str) -> str:
    """Return the sentence without the turn and the call at its beginning."""
    return _PLACE.sub("", sentence)


_COLUMNS = (
    TrialColumn("outcome", "Outcome", "mark", "outcome", lambda row: row.mark, _sort_up("failed")),
    TrialColumn(
        "model",
        "Model",
        "text",
        "model",
        lambda row: row.model,
        _sort_up("model"),
        lambda row: f"{row.model} · {row.profile} · {row.configuration}",
    ),
    TrialColumn("profile", "Profile", "text", "sampling_profile", lambda row: row.profile, _sort_up("profile")),
    TrialColumn("scenario", "Scenario", "code", "scenario", lambda row: row.scenario, _sort_up("scenario")),
    TrialColumn("why", "What went wrong first", "sentence", "sentence", lambda row: row.sentence, shorten=_omit_place),
    TrialColumn("cause", "Cause", "code", "cause", lambda row: row.cause, _sort_up("cause")),
    TrialColumn("path", "Path", "path", "path", lambda row: row.path),
    TrialColumn("expected", "Expected", "text", "expected_calls", lambda row: row.calls.expected if row.calls else ""),
    TrialColumn("got", "Got", "text", "calls_made", lambda row: row.calls.got if row.calls else ""),
    TrialColumn("turns", "Turns", "number", "turns", lambda row: row.turns, _sort_down("turns")),
    TrialColumn("retries", "Retries", "number", "retries", lambda row: row.retries, _sort_down("retries")),
    TrialColumn("tokens", "Tokens", "number", "tokens", lambda row: row.tokens, _sort_down("tokens")),
    TrialColumn("time", "Time, s", "seconds", "duration_ms", lambda row: row.duration_ms, _sort_down("slow", "fast")),
    TrialColumn(
        "started", "Started", "moment", "started_at", lambda row: row.started_at, _sort_down("newest", "oldest")
    ),
    TrialColumn("class", "Class", "code", "failure_class", lambda row: row.failure_class),
    TrialColumn("repeat", "Repeat", "number", "index", lambda row: row.index),
    TrialColumn("run", "Run", "number", "run", lambda row: row.run_id),
    TrialColumn("provider", "Provider", "text", "provider", lambda row: row.provider),
    TrialColumn("strategy", "Strategy", "text", "strategy", lambda row: row.strategy),
    TrialColumn("method", "Method", "text", "method", lambda row: row.method),
    TrialColumn("requests", "Requests", "number", "requests", lambda row: row.requests),
    TrialColumn("label", "Label", "text", "label", lambda row: row.label),
)
TRIAL_COLUMNS: Mapping[str, TrialColumn] = {column.name: column for column in _COLUMNS}


@dataclass(frozen=True, slots=True)
class TrialHead:
    """The head of a column.

    Attributes:
        query: query string that sorts by the column; "" if the column does not sort.
        direction: value of aria-sort; "" if the column does not sort.
    """

    column: TrialColumn
    query: str
    direction: str


class TrialCell(NamedTuple):
    """A cell of the list.

    A page has hundreds of cells, so the template unpacks them instead of looking up attributes, which takes longer.

    Attributes:
        kind: kind of the column.
        css_class: classes of the column.
        title: tooltip; "" for none.
    """

    kind: str
    css_class: str
    value: TrialValue
    title: str


def choose_trial_columns(names: Iterable[str]) -> tuple[TrialColumn, ...]:
    """Return the columns with these names in the order of the list; the default ones if no name is known."""
    chosen = set(names) & TRIAL_COLUMNS.keys() or set(_DEFAULT_COLUMNS)
    return tuple(column for column in _COLUMNS if column.name in chosen)


def list_heads(columns: Iterable[TrialColumn], trial_filter: TrialFilter) -> tuple[TrialHead, ...]:
    """Return the heads of the columns.

    A first click sorts by the column, a second click sorts in the opposite direction.
    """
    return tuple(_build_head(column, trial_filter) for column in columns)


def _build_head(column: TrialColumn, trial_filter: TrialFilter) -> TrialHead:
    if not column.sorts:
        return TrialHead(column, "", "")
    first, second = (name for name, _ in column.sorts)
    query = trial_filter.query(sort=second if trial_filter.sort == first else first)
    return TrialHead(column, query, dict(column.sorts).get(trial_filter.sort, "none"))


def list_cells(row: TrialRow, columns: Iterable[TrialColumn]) -> tuple[TrialCell, ...]:
    """Return the cells of a row."""
    return tuple(_build_cell(row, column) for column in columns)


def _build_cell(row: TrialRow, column: TrialColumn) -> TrialCell:
    value = column.read(row)
    shown = column.shorten(value) if column.shorten and isinstance(value, str) else value
    return TrialCell(column.kind, column.css_class, shown, _build_cell_title(row, column, value))


def _build_cell_title(row: TrialRow, column: TrialColumn, value: TrialValue) -> str:
    if column.title:
        return column.title(row)
    return value if isinstance(value, str) and column.kind != "mark" else ""


def export_trial_list(trial_filter: TrialFilter) -> ExportTable:
    """Return all columns of the newest MAX_COUNTED_TRIALS matching trials, in the order of the list."""
    rows, is_more = list_all_rows(trial_filter)
    limit_notes = (f"More than {MAX_COUNTED_TRIALS:,} trials match: the newest are exported.",) if is_more else ()
    is_simulated = any(row.simulated for row in rows)
    notes = ("Some of these models are simulated: their trials say nothing about real models.",) if is_simulated else ()
    columns = ("trial_id", "simulated", *(column.export for column in _COLUMNS))
    values = ((row.id, row.simulated, *(_to_export_value(column.read(row)) for column in _COLUMNS)) for row in rows)
    return ExportTable("Trials", (*notes, *limit_notes), columns, tuple(values))


def _to_export_value(value: TrialValue) -> str | int | float | bool | None:
    return value.isoformat() if isinstance(value, datetime) else value
