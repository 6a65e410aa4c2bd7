"""Computation of the counters, sums and statistics of cells from their trials.

A change of a trial marks its cell as stale. One SQL statement recomputes stale cells from all of their trials, so it
can be repeated at any time; no counter is ever incremented.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Q

from toolbench.lab.metrics.retries import RETRY_COUNTS_SQL
from toolbench.lab.metrics.spending import (
    COST_SQL,
    HAS_REPORTED_COST_SQL,
    LOST_SPENDING_OF_CELLS_SQL,
    find_prices,
    to_price_columns,
)
from toolbench.lab.models import Cell, CellTimes, RunConfig
from toolbench.lab.models.counters import build_count_expressions
from toolbench.lab.sql import load_statement

logger = logging.getLogger(__name__)

MAX_CELLS_PER_BATCH = 500
OUT_OF_RANGE_ERROR = "cost or time out of range"
MAX_RELIABLE_LAG_MS = 50  # a larger event-loop lag during a trial makes its times unreliable

# Cells that are stale already are locked too, so that no recomputation begins before the transaction has ended, but
# they are not written.
_MARK_STALE = """
WITH locked AS (SELECT id, stale FROM lab_cell WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
UPDATE lab_cell AS cell SET stale = true FROM locked WHERE cell.id = locked.id AND NOT locked.stale
"""

_LOCK_STALE = """
SELECT id FROM lab_cell WHERE stale AND id > %s AND (%s::bigint IS NULL OR run_id = %s)
ORDER BY id LIMIT %s FOR NO KEY UPDATE
"""

# Marks the runs of these cells for `refresh_pools` (lab/metrics/pools.py).
_INSERT_RUN_CHANGES = """
INSERT INTO lab_runchange (run_id) SELECT DISTINCT run_id FROM lab_cell WHERE id = ANY(%s)
"""

_TRIAL_COUNTS = build_count_expressions(counts_trials=True)
_SUMS = build_count_expressions(counts_trials=False)
_STATISTICS = {
    "prompt_version": "max(prompt_version)",
    # NULL if the cost of a trial is unknown or no trial was sent
    "cost": "CASE WHEN bool_and(dollars IS NOT NULL) AND bool_or(sent) THEN sum(dollars) END",
    "first_token_p50_ms": "percentile_disc(0.5) WITHIN GROUP (ORDER BY first_token_ms) FILTER (WHERE answered)",
    "p50_ms": "percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE answered)",
    "p95_ms": "percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE answered)",
    "upstreams": "jsonb_agg(DISTINCT upstream) FILTER (WHERE upstream <> '')",
}
_TIMES = {  # columns of lab_celltimes
    "durations": "string_agg(float8send(duration_ms), ''::bytea ORDER BY duration_ms) FILTER (WHERE answered)",
    "first_tokens": "string_agg(float8send(first_token_ms), ''::bytea ORDER BY first_token_ms) FILTER (WHERE answered)",
    "longest_ms": "max(greatest(duration_ms, first_token_ms)) FILTER (WHERE answered)",
}
_BLANK_VALUES = {"prompt_version": "''", "upstreams": "'[]'::jsonb"}
_DEFAULT_VALUES = {name: getattr(Cell(), name) for name in (*_SUMS, *_STATISTICS)}


def _render_select(columns: Mapping[str, str]) -> str:
    return ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())


def _render_assignments(columns: Mapping[str, str], blank: str = "0") -> str:
    """Return the SQL that sets columns.

    NULL becomes the column's value in _BLANK_VALUES, or `blank`. All columns are NULL for a cell without trials, which
    has no row in `derived` (`d`, recompute_cells.sql).
    """
    return ", ".join(f'"{name}" = coalesce(d."{name}", {_BLANK_VALUES.get(name, blank)})' for name in columns)


_CELL_TRIALS_SQL = load_statement("metrics/cell_trials")


RECOMPUTE_STATEMENT = load_statement(
    "metrics/recompute_cells",
    trials=_CELL_TRIALS_SQL,
    lost_spending=LOST_SPENDING_OF_CELLS_SQL,
    retry_counts=RETRY_COUNTS_SQL,
    cost=COST_SQL,
    has_reported_cost=HAS_REPORTED_COST_SQL,
    counts=_render_select(_TRIAL_COUNTS),
    sums=_render_select(_SUMS),
    statistics=_render_select(_STATISTICS),
    times=_render_select(_TIMES),
    set_counts=_render_assignments(_TRIAL_COUNTS),
    set_sums=_render_assignments(_SUMS),
    set_statistics=_render_assignments(_STATISTICS, "NULL"),
)

_COUNT_TRIALS = load_statement(
    "metrics/count_trials",
    trials=_CELL_TRIALS_SQL,
    counts=_render_select(_TRIAL_COUNTS),
    set_counts=_render_assignments(_TRIAL_COUNTS),
)


def mark_stale(cell_ids: Iterable[int]) -> None:
    """Mark cells for recomputing. Call it in the transaction that changed their trials, after the change.

    Rows are locked in id order, so that two transactions cannot deadlock.
    """
    unique_ids = sorted(set(cell_ids))
    if not unique_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_MARK_STALE, [unique_ids])


def mark_list_priced_stale(cells: Q) -> None:
    """Mark for recomputing those cells whose price follows from list prices or the provider.

    Cells whose configuration has a stored price keep it. Call it in the transaction that changed the list prices or the
    provider.
    """
    mark_stale(Cell.objects.filter(cells, config__price={}).values_list("pk", flat=True))


def recompute_immediately(cell_ids: Iterable[int]) -> None:
    """Recompute cells in the current transaction.

    Use it for user actions, so that the next page shows the result. Trials that finish one by one use `mark_stale`.
    """
    unique_ids = sorted(set(cell_ids))
    mark_stale(unique_ids)
    recompute(unique_ids)


def recompute_stale(limit: int = MAX_CELLS_PER_BATCH) -> int:
    """Recompute up to `limit` stale cells and return their number.

    Cells that another transaction has locked are skipped. A separate statement locks the cells first, so that the next
    statement sees every change committed before the lock. Later changes wait for the lock and mark the cell as stale
    again.
    """
    return len(_recompute_stale(f"{_LOCK_STALE} SKIP LOCKED", after=0, run_id=None, limit=limit))


def recompute_all_stale(run_id: int | None = None) -> None:
    """Recompute each stale cell of a run once; without a run, those of all runs.

    The call waits for cells that another transaction has locked. It visits cells in id order, so it ends even if they
    become stale again meanwhile.
    """
    last_id = 0
    while cell_ids := _recompute_stale(_LOCK_STALE, after=last_id, run_id=run_id, limit=MAX_CELLS_PER_BATCH):
        last_id = cell_ids[-1]


def _recompute_stale(lock_sql: str, *, after: int, run_id: int | None, limit: int) -> list[int]:
    """Lock and recompute up to `limit` stale cells with ids above `after`; return their ids in order."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(lock_sql, [after, run_id, run_id, limit])
        cell_ids = [row[0] for row in cursor.fetchall()]
        recompute(cell_ids)
    return cell_ids


def recompute(cell_ids: Sequence[int]) -> None:
    """Compute all counters, sums and statistics of these cells.

    Call it in the transaction that created or locked their rows.

    If the sums of a cell are out of the database's range, its trials are counted, its sums and statistics are reset to
    their defaults, and `compute_error` gets the reason. The cell is then no longer stale. The other cells are computed
    as usual.
    """
    if not cell_ids:
        return
    prices = find_prices(RunConfig.objects.filter(cells__in=cell_ids))
    priced_config_ids, input_prices, output_prices = to_price_columns(prices)
    price_parameters = {"priced": priced_config_ids, "input": input_prices, "output": output_prices}
    _recompute_or_split(list(cell_ids), {"lag": MAX_RELIABLE_LAG_MS, **price_parameters})
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_RUN_CHANGES, [list(cell_ids)])


def _recompute_or_split(cell_ids: list[int], parameters: Mapping[str, Any]) -> None:
    """Recompute cells; if the database refuses a sum, halve the list until the refused cells are found."""
    try:
        # A cursor of psycopg lets a worker's connection plan the statement once; planning takes half of the time.
        with transaction.atomic(), connection.wrap_database_errors:
            psycopg.Cursor(connection.connection).execute(RECOMPUTE_STATEMENT, {**parameters, "cells": cell_ids})
    except (DataError, IntegrityError) as error:
        if len(cell_ids) == 1:
            # The message of an IntegrityError names a constraint, which does not help the reader.
            is_constraint = isinstance(error, IntegrityError)
            reason = OUT_OF_RANGE_ERROR if is_constraint else str(error).partition("\n")[0]
            _mark_uncomputable(cell_ids[0], parameters, reason)
            return
        middle = len(cell_ids) // 2
        _recompute_or_split(cell_ids[:middle], parameters)
        _recompute_or_split(cell_ids[middle:], parameters)


def _mark_uncomputable(cell_id: int, parameters: Mapping[str, Any], reason: str) -> None:
    """Count the trials of a cell, reset its sums and statistics to their defaults, and store the reason."""
    logger.error("The sums of cell %s cannot be computed: %s", cell_id, reason)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_TRIALS, {"lag": parameters["lag"], "cells": [cell_id]})
    Cell.objects.filter(pk=cell_id).update(compute_error=reason[:200], **_DEFAULT_VALUES)
    CellTimes.objects.filter(cell_id=cell_id).delete()


def mark_uncomputable_stale() -> int:
    """Mark every cell that could not be computed as stale, for the next sweep; return their number."""
    cell_ids = list(Cell.objects.exclude(compute_error="").values_list("pk", flat=True))
    with transaction.atomic():
        mark_stale(cell_ids)
    return len(cell_ids)
