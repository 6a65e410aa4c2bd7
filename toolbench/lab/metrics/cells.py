"""Cells: counts derived from trials.

A change of a trial marks its cell as stale. One idempotent statement recomputes a stale cell from all of its trials;
nothing is ever added to a count.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Q

from toolbench.lab.metrics.retries import RETRY_COUNTS_SQL
from toolbench.lab.metrics.spending import (
    COST_SQL,
    HAS_REPORTED_COST_SQL,
    LOST_SPENDING_SQL,
    find_prices,
    to_price_columns,
)
from toolbench.lab.models import Cell, CellTimes, RunConfig
from toolbench.lab.models.counters import build_count_expressions
from toolbench.lab.sql import load_statement

logger = logging.getLogger(__name__)

ANSWERED = Q(outcome="pass") | (Q(outcome="fail") & ~Q(end="DEADLINE_EXCEEDED"))  # trials; as `answered` below
MAX_CELLS_PER_BATCH = 500
OUT_OF_RANGE_ERROR = "cost or time out of range"
MAX_START_DIFFERENCE = timedelta(hours=1)  # runs that began further apart met another time of day
SATURATED_LAG_MS = 50  # a trial measured while the event loop lagged more than this is flagged

_MARK_STALE = """
UPDATE lab_cell SET stale = true
WHERE id IN (SELECT id FROM lab_cell WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
"""

_LOCK_STALE = """
SELECT id FROM lab_cell WHERE stale AND id > %s AND (%s::bigint IS NULL OR run_id = %s)
ORDER BY id LIMIT %s FOR NO KEY UPDATE
"""

# Pools that hold these runs are derived anew (lab/metrics/pools.py).
_NOTE_CHANGES = """
INSERT INTO lab_runchange (run_id) SELECT DISTINCT run_id FROM lab_cell WHERE id = ANY(%s)
"""

# The cost of a cell is known when that of every trial is.
_TRIAL_COUNTS = build_count_expressions(in_range=True)
_SUMS = build_count_expressions(in_range=False)
_STATISTICS = {
    "prompt_version": "max(prompt_version)",
    "cost": "CASE WHEN bool_and(dollars IS NOT NULL) AND bool_or(sent) THEN sum(dollars) END",
    "first_token_p50_ms": "percentile_disc(0.5) WITHIN GROUP (ORDER BY first_token_ms) FILTER (WHERE answered)",
    "p50_ms": "percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE answered)",
    "p95_ms": "percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE answered)",
    "upstreams": "jsonb_agg(DISTINCT upstream) FILTER (WHERE upstream <> '')",
}
_TIMES = {  # of lab_celltimes
    "durations": "string_agg(float8send(duration_ms), ''::bytea ORDER BY duration_ms) FILTER (WHERE answered)",
    "first_tokens": "string_agg(float8send(first_token_ms), ''::bytea ORDER BY first_token_ms) FILTER (WHERE answered)",
    "longest_ms": "max(greatest(duration_ms, first_token_ms)) FILTER (WHERE answered)",
}
_BLANK_VALUES = {"prompt_version": "''", "upstreams": "'[]'::jsonb"}
_UNKNOWN_FIGURES = {name: getattr(Cell(), name) for name in (*_SUMS, *_STATISTICS)}


def _render_select(columns: Mapping[str, str]) -> str:
    return ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())


def _render_assignments(columns: Mapping[str, str], blank: str = "0") -> str:
    """Return the SQL that sets columns; a cell without trials has no row in `derived` and gets blank values."""
    return ", ".join(f'"{name}" = coalesce(d."{name}", {_BLANK_VALUES.get(name, blank)})' for name in columns)


_TRIED = load_statement("metrics/tried_trials")


_RECOMPUTE = load_statement(
    "metrics/recompute_cells",
    tried=_TRIED,
    lost_spending=LOST_SPENDING_SQL,
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
    tried=_TRIED,
    counts=_render_select(_TRIAL_COUNTS),
    set_counts=_render_assignments(_TRIAL_COUNTS),
)


def mark_stale(cell_ids: Iterable[int]) -> None:
    """Mark cells as stale. Call it in the transaction that changed the trials, after the change.

    Cells are locked in sorted order, so that two batches never wait for each other.
    """
    unique_ids = sorted(set(cell_ids))
    if not unique_ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(_MARK_STALE, [unique_ids])


def recompute_immediately(cell_ids: Iterable[int]) -> None:
    """Mark cells as stale and recompute them in the same transaction.

    Use it for actions of a person, so that the next page shows the result. Trials that finish one by one are better
    recomputed together, later.
    """
    cells = sorted(set(cell_ids))
    mark_stale(cells)
    recompute(cells)


def recompute_stale(limit: int = MAX_CELLS_PER_BATCH) -> int:
    """Recompute up to `limit` stale cells and return their number; cells that another transaction changes are skipped.

    A statement of its own locks the cells: the next statement sees every change that was committed before the lock.
    Every later change waits for the lock and marks the cell as stale again.
    """
    return len(_recompute_stale(f"{_LOCK_STALE} SKIP LOCKED", after=0, run_id=None, limit=limit))


def recompute_all_stale(run_id: int | None = None) -> None:
    """Recompute every stale cell of a run, or of all runs, once.

    It ends however fast cells become stale again. It waits for cells that another transaction changes.
    """
    last = 0
    while cells := _recompute_stale(_LOCK_STALE, after=last, run_id=run_id, limit=MAX_CELLS_PER_BATCH):
        last = cells[-1]


def _recompute_stale(locking: str, *, after: int, run_id: int | None, limit: int) -> list[int]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(locking, [after, run_id, run_id, limit])
        cells = [row[0] for row in cursor.fetchall()]
        recompute(cells)
    return cells


def recompute(cells: Sequence[int]) -> None:
    """Derive the figures of these cells anew. Call it in the transaction that made or locked their rows.

    A cell whose sums the database refuses because they are out of range is set aside: its trials are counted, its sums
    are unknown, `compute_error` says why, and it is no longer stale. The other cells are computed as usual.
    """
    if not cells:
        return
    configs, input_price, answered = to_price_columns(find_prices(RunConfig.objects.filter(cells__in=cells)))
    prices: dict[str, Any] = {"priced": configs, "input": input_price, "output": answered}
    _recompute_or_split(list(cells), {"lag": SATURATED_LAG_MS, **prices})
    with connection.cursor() as cursor:
        cursor.execute(_NOTE_CHANGES, [list(cells)])


def _recompute_or_split(cells: list[int], given: Mapping[str, Any]) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_RECOMPUTE, {**given, "cells": cells})
    except (DataError, IntegrityError) as error:
        if len(cells) == 1:
            figure = isinstance(error, IntegrityError)  # the message names a constraint, which says little
            _set_aside(cells, given, OUT_OF_RANGE_ERROR if figure else str(error).partition("\n")[0])
            return
        middle = len(cells) // 2
        _recompute_or_split(cells[:middle], given)
        _recompute_or_split(cells[middle:], given)


def _set_aside(cells: list[int], given: Mapping[str, Any], why: str) -> None:
    logger.error("The sums of cell %s cannot be computed, so it is set aside: %s", *cells, why)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_TRIALS, {"lag": given["lag"], "cells": cells})
    Cell.objects.filter(pk__in=cells).update(compute_error=why[:200], **_UNKNOWN_FIGURES)
    CellTimes.objects.filter(cell__in=cells).delete()


def retry_set_aside() -> int:
    """Mark every cell that was set aside as stale, so that the next sweep computes it again; return their number."""
    cells = list(Cell.objects.exclude(compute_error="").values_list("pk", flat=True))
    with transaction.atomic():
        mark_stale(cells)
    return len(cells)
