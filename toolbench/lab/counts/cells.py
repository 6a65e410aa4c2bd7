"""Cells: counts derived from trials. A cell is marked stale by whoever changes one of its trials and recomputed from
all of them by one idempotent statement; nothing is ever added to a count."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from toolbench.lab.counts.spending import DOLLARS, SPENT, price_columns, prices_of
from toolbench.lab.counts.tallies import SUMMED
from toolbench.lab.models import RunConfig

ANSWERED = Q(outcome="pass") | (Q(outcome="fail") & ~Q(end="DEADLINE_EXCEEDED"))  # trials; as `answered` below
CELLS_AT_ONCE = 500
FAR_APART = timedelta(hours=1)  # runs that began further apart met another time of day
SATURATED_LAG_MS = 50  # a trial measured while the event loop lagged more than this is flagged

_MARK = """
UPDATE lab_cell SET stale = true
WHERE id IN (SELECT id FROM lab_cell WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
"""

_LOCK_STALE = """
SELECT id FROM lab_cell WHERE stale AND id > %s AND (%s::bigint IS NULL OR run_id = %s)
ORDER BY id LIMIT %s FOR NO KEY UPDATE
"""

# Counts of a trial of which its cell has the sum.
COUNTS = (
    "calls", "valid_calls", "structured_answers", "calling_answers", "parse_error_turns", "calling_turns",
    "repaired_calls", "parse_error_ends", "fallback_turns", "asked_again", "failed_calls", "missing_calls",
    "type_calls", "enum_calls", "range_calls", "extra_calls", "ignored_calls", "answered_turns", "good_turns",
    "final_answers", "empty_finals", "arguments_asked", "arguments_right",
)  # fmt: skip
_ADDED_UP = ", ".join(f"sum({name}) FILTER (WHERE counted) AS {name}" for name in COUNTS)
_SET = ", ".join(f'"{name}" = coalesce(d."{name}", 0)' for name in (*SUMMED, "behaviour_seen", "behaviour_asked"))

# What is paid is counted whatever became of it. The cost of a cell is known when that of every trial is.
_RECOMPUTE = f"""
WITH tried AS (
    SELECT *, outcome = 'pass' OR (outcome = 'fail' AND "end" <> 'DEADLINE_EXCEEDED') AS answered,
        state = 'done' AND outcome <> 'cancelled' AS counted
    FROM lab_trial WHERE cell_id = ANY(%(cells)s)
), spent AS ({SPENT}), paid AS (
    SELECT tried.id, {DOLLARS} AS dollars,
        outcome IN ('pass', 'fail', 'infra') OR tried.requests > 0 OR spent.requests > 0 AS sent
    FROM tried LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%(priced)s::bigint[], %(input)s::float[], %(output)s::float[]) AS price(config, input, output)
        ON price.config = tried.config_id
), derived AS (
    SELECT cell_id,
        count(*) FILTER (WHERE state = 'queued') AS queued,
        count(*) FILTER (WHERE state = 'running') AS running,
        count(*) FILTER (WHERE outcome = 'pass') AS passed,
        count(*) FILTER (WHERE outcome = 'fail') AS failed,
        count(*) FILTER (WHERE outcome = 'infra') AS infra,
        count(*) FILTER (WHERE outcome = 'na') AS not_applicable,
        count(*) FILTER (WHERE outcome = 'cancelled') AS cancelled,
        count(*) FILTER (WHERE outcome = 'fail' AND "end" = 'DEADLINE_EXCEEDED') AS deadline_failed,
        count(*) FILTER (WHERE answered AND parity_pass) AS parity_passed,
        count(*) FILTER (WHERE answered AND parity_pass IS NOT NULL) AS parity_judged,
        count(*) FILTER (WHERE answered AND behaviour_seen) AS behaviour_seen,
        count(*) FILTER (WHERE answered AND behaviour_seen IS NOT NULL) AS behaviour_asked,
        count(DISTINCT answer_hash) FILTER (WHERE answered AND answer_hash <> '') AS "distinct",
        count(*) FILTER (WHERE outcome = 'pass' AND output_retries = 0) AS first_attempt_passed,
        {_ADDED_UP},
        count(*) FILTER (WHERE answered AND failed_calls > 0) AS error_trials,
        count(*) FILTER (WHERE outcome = 'pass' AND failed_calls > 0) AS recovered_trials,
        count(*) FILTER (WHERE answered AND call_expected AND calling_answers > 0) AS called_rightly,
        count(*) FILTER (WHERE answered AND NOT call_expected AND calling_answers > 0) AS called_needlessly,
        count(*) FILTER (WHERE answered AND call_expected AND calling_answers = 0) AS call_missed,
        count(*) FILTER (WHERE answered AND NOT call_expected AND calling_answers = 0) AS rightly_silent,
        sum(tried.requests + coalesce(spent.requests, 0)) AS requests,
        sum(tried.retries + coalesce(spent.retries, 0)) AS retries,
        sum(tried.input_tokens + coalesce(spent.input_tokens, 0)) AS input_tokens,
        sum(tried.output_tokens + coalesce(spent.output_tokens, 0)) AS output_tokens,
        sum(cached_tokens) AS cached_tokens,
        sum(reasoning_tokens) AS reasoning_tokens,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY first_token_ms) FILTER (WHERE answered) AS first_token_p50_ms,
        max(prompt_version) AS prompt_version,
        CASE WHEN bool_and(dollars IS NOT NULL) AND bool_or(sent) THEN sum(dollars) END AS cost,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE answered) AS p50_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE answered) AS p95_ms,
        count(*) FILTER (WHERE added_by_hand) AS added_by_hand,
        count(*) FILTER (WHERE errors_retried > 0) AS errors_retried,
        count(*) FILTER (WHERE errors_retried > 0 AND outcome = 'pass') AS late_passes,
        count(*) FILTER (WHERE client_lag_ms > %(lag)s) AS saturated,
        jsonb_agg(DISTINCT upstream) FILTER (WHERE upstream <> '') AS upstreams
    FROM tried LEFT JOIN spent USING (id) JOIN paid USING (id) GROUP BY cell_id
)
UPDATE lab_cell AS cell SET stale = false, {_SET}, cost = d.cost, p50_ms = d.p50_ms, p95_ms = d.p95_ms,
    first_token_p50_ms = d.first_token_p50_ms, prompt_version = coalesce(d.prompt_version, ''),
    upstreams = coalesce(d.upstreams, '[]'::jsonb)
FROM unnest(%(cells)s::bigint[]) AS wanted(id) LEFT JOIN derived AS d ON d.cell_id = wanted.id
WHERE cell.id = wanted.id
"""


def mark_stale(cell_ids: Iterable[int]) -> None:
    """To be called in the transaction that changed the trials, after the change. Locks in sorted order, so that two
    batches never wait for each other."""
    wanted = sorted(set(cell_ids))
    if not wanted:
        return
    with connection.cursor() as cursor:
        cursor.execute(_MARK, [wanted])


def recompute_at_once(cell_ids: Iterable[int]) -> None:
    """As `mark_stale`, and done in the same transaction: for what a person did, so that the page which follows shows
    it. Trials that finish one by one are better recomputed together, later."""
    cells = sorted(set(cell_ids))
    mark_stale(cells)
    recompute(cells)


def recompute_stale(limit: int = CELLS_AT_ONCE) -> int:
    """Recomputes up to `limit` stale cells and returns how many. Cells that somebody is changing now are left for the
    next time.

    The cells are locked by a statement of their own: the second one then sees every change that was committed before
    the lock, and every later change waits for it and marks the cell stale again."""
    return len(_recompute_stale(f"{_LOCK_STALE} SKIP LOCKED", after=0, run_id=None, limit=limit))


def bring_up_to_date(run_id: int | None = None) -> None:
    """Recomputes the stale cells of a run, or all there are, each once: however fast others make them stale again, it
    comes to an end. Waits for those that somebody is changing now."""
    last = 0
    while cells := _recompute_stale(_LOCK_STALE, after=last, run_id=run_id, limit=CELLS_AT_ONCE):
        last = cells[-1]


def _recompute_stale(locking: str, *, after: int, run_id: int | None, limit: int) -> list[int]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(locking, [after, run_id, run_id, limit])
        cells = [row[0] for row in cursor.fetchall()]
        recompute(cells)
    return cells


def recompute(cells: Sequence[int]) -> None:
    """Cells whose rows this transaction has made or locked."""
    if not cells:
        return
    configs, asked, answered = price_columns(prices_of(RunConfig.objects.filter(cells__in=cells)))
    given: dict[str, Any] = {
        "cells": list(cells),
        "lag": SATURATED_LAG_MS,
        "priced": configs,
        "input": asked,
        "output": answered,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECOMPUTE, given)
