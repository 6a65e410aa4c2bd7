"""Cells: counts derived from trials. A cell is marked stale by whoever changes one of its trials and recomputed from
all of them by one idempotent statement; nothing is ever added to a count."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from toolbench.lab.counts.spending import DOLLARS, SPENT, price_columns, prices_of
from toolbench.lab.models import RunConfig

ANSWERED = Q(outcome="pass") | (Q(outcome="fail") & ~Q(end="DEADLINE_EXCEEDED"))  # trials; as `answered` below
SATURATED_LAG_MS = 50  # a trial measured while the event loop lagged more than this is flagged

_MARK = """
UPDATE lab_cell SET stale = true
WHERE id IN (SELECT id FROM lab_cell WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE)
"""

_LOCK_STALE = "SELECT id FROM lab_cell WHERE stale ORDER BY id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED"

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
        count(*) FILTER (WHERE answered AND behaviour_seen) AS behaviour_seen,
        count(*) FILTER (WHERE answered AND behaviour_seen IS NOT NULL) AS behaviour_asked,
        count(DISTINCT answer_hash) FILTER (WHERE answered AND answer_hash <> '') AS "distinct",
        count(*) FILTER (WHERE outcome = 'pass' AND output_retries = 0) AS first_attempt_passed,
        sum(calls) FILTER (WHERE counted) AS calls,
        sum(valid_calls) FILTER (WHERE counted) AS valid_calls,
        sum(structured_answers) FILTER (WHERE counted) AS structured_answers,
        sum(calling_answers) FILTER (WHERE counted) AS calling_answers,
        sum(parse_error_turns) FILTER (WHERE counted) AS parse_error_turns,
        sum(calling_turns) FILTER (WHERE counted) AS calling_turns,
        sum(repaired_calls) FILTER (WHERE counted) AS repaired_calls,
        sum(parse_error_ends) FILTER (WHERE counted) AS parse_error_ends,
        sum(fallback_turns) FILTER (WHERE counted) AS fallback_turns,
        sum(asked_again) FILTER (WHERE counted) AS asked_again,
        sum(failed_calls) FILTER (WHERE counted) AS failed_calls,
        sum(missing_calls) FILTER (WHERE counted) AS missing_calls,
        sum(type_calls) FILTER (WHERE counted) AS type_calls,
        sum(enum_calls) FILTER (WHERE counted) AS enum_calls,
        sum(range_calls) FILTER (WHERE counted) AS range_calls,
        sum(extra_calls) FILTER (WHERE counted) AS extra_calls,
        sum(ignored_calls) FILTER (WHERE counted) AS ignored_calls,
        sum(answered_turns) FILTER (WHERE counted) AS answered_turns,
        sum(good_turns) FILTER (WHERE counted) AS good_turns,
        sum(final_answers) FILTER (WHERE counted) AS final_answers,
        sum(empty_finals) FILTER (WHERE counted) AS empty_finals,
        sum(arguments_asked) FILTER (WHERE counted) AS arguments_asked,
        sum(arguments_right) FILTER (WHERE counted) AS arguments_right,
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
UPDATE lab_cell AS cell SET stale = false,
    queued = coalesce(d.queued, 0), running = coalesce(d.running, 0), passed = coalesce(d.passed, 0),
    failed = coalesce(d.failed, 0), infra = coalesce(d.infra, 0), not_applicable = coalesce(d.not_applicable, 0),
    cancelled = coalesce(d.cancelled, 0), deadline_failed = coalesce(d.deadline_failed, 0),
    parity_passed = coalesce(d.parity_passed, 0), behaviour_seen = coalesce(d.behaviour_seen, 0),
    behaviour_asked = coalesce(d.behaviour_asked, 0), "distinct" = coalesce(d."distinct", 0),
    first_attempt_passed = coalesce(d.first_attempt_passed, 0), calls = coalesce(d.calls, 0),
    valid_calls = coalesce(d.valid_calls, 0), structured_answers = coalesce(d.structured_answers, 0),
    calling_answers = coalesce(d.calling_answers, 0), parse_error_turns = coalesce(d.parse_error_turns, 0),
    calling_turns = coalesce(d.calling_turns, 0), repaired_calls = coalesce(d.repaired_calls, 0),
    parse_error_ends = coalesce(d.parse_error_ends, 0), fallback_turns = coalesce(d.fallback_turns, 0),
    asked_again = coalesce(d.asked_again, 0), requests = coalesce(d.requests, 0),
    retries = coalesce(d.retries, 0), input_tokens = coalesce(d.input_tokens, 0),
    output_tokens = coalesce(d.output_tokens, 0), cost = d.cost, p50_ms = d.p50_ms, p95_ms = d.p95_ms,
    failed_calls = coalesce(d.failed_calls, 0), missing_calls = coalesce(d.missing_calls, 0),
    type_calls = coalesce(d.type_calls, 0), enum_calls = coalesce(d.enum_calls, 0),
    range_calls = coalesce(d.range_calls, 0), extra_calls = coalesce(d.extra_calls, 0),
    ignored_calls = coalesce(d.ignored_calls, 0), answered_turns = coalesce(d.answered_turns, 0),
    good_turns = coalesce(d.good_turns, 0), final_answers = coalesce(d.final_answers, 0),
    empty_finals = coalesce(d.empty_finals, 0), arguments_asked = coalesce(d.arguments_asked, 0),
    arguments_right = coalesce(d.arguments_right, 0), error_trials = coalesce(d.error_trials, 0),
    recovered_trials = coalesce(d.recovered_trials, 0), called_rightly = coalesce(d.called_rightly, 0),
    called_needlessly = coalesce(d.called_needlessly, 0), call_missed = coalesce(d.call_missed, 0),
    rightly_silent = coalesce(d.rightly_silent, 0), cached_tokens = coalesce(d.cached_tokens, 0),
    reasoning_tokens = coalesce(d.reasoning_tokens, 0),
    first_token_p50_ms = d.first_token_p50_ms, prompt_version = coalesce(d.prompt_version, ''),
    added_by_hand = coalesce(d.added_by_hand, 0), errors_retried = coalesce(d.errors_retried, 0),
    late_passes = coalesce(d.late_passes, 0), saturated = coalesce(d.saturated, 0),
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


def recompute_stale(limit: int = 500) -> int:
    """Recomputes up to `limit` stale cells and returns how many. Cells that somebody is changing now are left for the
    next time.

    The cells are locked by a statement of their own: the second one then sees every change that was committed before
    the lock, and every later change waits for it and marks the cell stale again."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_STALE, [limit])
        cells = [row[0] for row in cursor.fetchall()]
        recompute(cells)
    return len(cells)


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
