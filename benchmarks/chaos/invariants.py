"""Invariants of every run after a round of faults, checked in SQL on the stack's database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DataError, connection, transaction
from django.db.models import QuerySet

from toolbench.lab.metrics.cells import recompute
from toolbench.lab.models import Cell, CellTimes
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS

# A trigger of the database records every end of a trial, in the transaction of that end.
_END_TRIGGER_SQL = """
CREATE TABLE IF NOT EXISTS chaos_end (trial_id bigint NOT NULL, execution integer NOT NULL, outcome text NOT NULL);
CREATE INDEX IF NOT EXISTS chaos_end_trial ON chaos_end (trial_id);
CREATE OR REPLACE FUNCTION chaos_note_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_end VALUES (NEW.id, NEW.execution, NEW.outcome);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER chaos_end AFTER UPDATE ON lab_trial FOR EACH ROW
WHEN (NEW.state = 'done' AND (OLD.state <> 'done' OR OLD.outcome <> NEW.outcome OR OLD.finished_at <> NEW.finished_at))
EXECUTE FUNCTION chaos_note_end();
"""

_LOST_QUERY = """
SELECT run.id, format('%%s of %%s trials exist', count(trial.id), run.trial_count)
FROM lab_run AS run LEFT JOIN lab_trial AS trial ON trial.run_id = run.id
WHERE run.id = ANY(%(runs)s) GROUP BY run.id HAVING count(trial.id) <> run.trial_count
UNION ALL
SELECT run_id, format('trial %%s is done without an outcome, an end or a time', id) FROM lab_trial
WHERE run_id = ANY(%(runs)s) AND state = 'done'
    AND (outcome = '' OR "end" = '' AND outcome <> 'na' OR finished_at IS NULL OR lease IS NOT NULL)
"""

_DOUBLED_QUERY = """
SELECT trial.run_id, format('trial %%s ended %%s times: %%s', trial.id, count(*), string_agg(chaos_end.outcome, ', '))
FROM chaos_end JOIN lab_trial AS trial ON trial.id = chaos_end.trial_id
WHERE trial.run_id = ANY(%(runs)s) GROUP BY trial.id HAVING count(*) > 1
UNION ALL
SELECT run_id, format('cell %%s has repeat %%s %%s times', cell_id, index, count(*)) FROM lab_trial
WHERE run_id = ANY(%(runs)s) GROUP BY run_id, cell_id, index HAVING count(*) > 1
"""

_STUCK_QUERY = """
SELECT run.id, format('%%s; %%s queued, %%s running, %%s stale cells', run.state,
    (SELECT count(*) FROM lab_trial WHERE run_id = run.id AND state = 'queued'),
    (SELECT count(*) FROM lab_trial WHERE run_id = run.id AND state = 'running'),
    (SELECT count(*) FROM lab_cell WHERE run_id = run.id AND stale))
FROM lab_run AS run WHERE run.id = ANY(%(runs)s) AND (
    EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state = 'running')
    OR EXISTS (SELECT 1 FROM lab_cell WHERE run_id = run.id AND stale)
    OR run.state NOT IN ('finished', 'cancelled', 'paused')
    OR run.state <> 'paused' AND run.finished_at IS NULL)
"""

# Trials may be queued only in a run that is paused and has a reason.
_QUEUED_QUERY = """
SELECT run.id,
    format('%%s trials are queued in a run that is %%s, reason "%%s"', count(*), run.state, run.stopped_reason)
FROM lab_run AS run JOIN lab_trial AS trial ON trial.run_id = run.id AND trial.state = 'queued'
WHERE run.id = ANY(%(runs)s) AND (run.state <> 'paused' OR run.stopped_reason = '') GROUP BY run.id
UNION ALL
SELECT id, format('the run is paused without a reason') FROM lab_run
WHERE id = ANY(%(runs)s) AND state = 'paused' AND stopped_reason = ''
"""

# A run with poisoned answers may have infrastructure errors that a provider can cause, another run none.
_INTERNAL_ERRORS_QUERY = """
SELECT run_id, format('%%s trials: %%s (%%s)', count(*), failure_class, min(sentence)) FROM lab_trial
WHERE run_id = ANY(%(runs)s) AND outcome = 'infra'
    AND (run_id <> ALL(%(poisoned)s) OR failure_class IN ('our_error', 'plan_refused', 'provider_deleted'))
GROUP BY run_id, failure_class
"""

_LIMITS_QUERY = """
SELECT run.id, format('reserved %%s, sent %%s, limit %%s', requests_reserved, sent.requests, request_cap)
FROM lab_run AS run JOIN unnest(%(runs)s::bigint[], %(sent)s::int[]) AS sent(run_id, requests) ON sent.run_id = run.id
WHERE request_cap IS NOT NULL AND (sent.requests > requests_reserved OR requests_reserved > request_cap)
"""

# A trial that is cancelled after it was queued again has no counts: its cell counts the steps of the lost execution.
_STEPS_QUERY = """
SELECT trial.run_id, format('trial %%s counted %%s requests, %%s are stored', trial.id, trial.requests, count(step.id))
FROM lab_trial AS trial LEFT JOIN lab_step AS step
    ON step.trial_id = trial.id AND step.execution = trial.execution AND step.kind = 'exchange'
WHERE trial.run_id = ANY(%(runs)s) AND trial.state = 'done' AND (trial.outcome <> 'cancelled' OR trial.requests > 0)
GROUP BY trial.id HAVING count(step.id) <> trial.requests
"""

# Counted here by SQL of its own, to check the product's.
_CELLS_QUERY = """
SELECT cell.run_id, format('cell %%s: %%s passed, %%s failed, %%s errors, %%s queued; trials: %%s, %%s, %%s, %%s',
    cell.id, cell.passed, cell.failed, cell.infra, cell.queued, found.passed, found.failed, found.infra, found.queued)
FROM lab_cell AS cell CROSS JOIN LATERAL (
    SELECT coalesce(sum((outcome = 'pass')::int), 0) AS passed, coalesce(sum((outcome = 'fail')::int), 0) AS failed,
        coalesce(sum((outcome = 'infra')::int), 0) AS infra, coalesce(sum((state = 'queued')::int), 0) AS queued
    FROM lab_trial WHERE cell_id = cell.id) AS found
WHERE cell.run_id = ANY(%(runs)s)
    AND (cell.passed, cell.failed, cell.infra, cell.queued)
        <> (found.passed, found.failed, found.infra, found.queued)
"""

# A failed job belongs to no run. It is reported once, with the first run that is checked after it. Faults of database
# and disk cause errors of an unavailable database; these are allowed.
_JOB_FAILURES_QUERY = """
DELETE FROM lab_jobfailure WHERE error <> ALL(%(away)s)
RETURNING (%(runs)s::bigint[])[1],
    format('%%s failed %%s times: %%s in %%s %%s', job, count, error, place, provider_name)
"""

_MAX_LISTED_COLUMNS = 5  # wrong columns that are named per cell
_QUERY_BY_KIND = {
    "lost": _LOST_QUERY,
    "doubled": _DOUBLED_QUERY,
    "stuck": _STUCK_QUERY,
    "queued": _QUEUED_QUERY,
    "own error": _INTERNAL_ERRORS_QUERY,
    "limit": _LIMITS_QUERY,
    "steps": _STEPS_QUERY,
    "cell": _CELLS_QUERY,
    "job failure": _JOB_FAILURES_QUERY,
}
VIOLATION_KINDS = tuple(_QUERY_BY_KIND)


@dataclass(frozen=True, slots=True)
class Violation:
    """Broken invariant.

    Attributes:
        kind: one of VIOLATION_KINDS; the crash schedules add `exception`.
        run_id: the run; 0 for a violation that belongs to no run.
    """

    kind: str
    run_id: int
    text: str


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """Run to check.

    Attributes:
        sent: number of requests that its provider received; None if it does not count them.
        poisoned: whether its provider gave poisoned answers.
    """

    run_id: int
    sent: int | None = None
    poisoned: bool = False


def install_end_trigger() -> None:
    """Let the database record every end of a trial from now on."""
    with connection.cursor() as cursor:
        cursor.execute(_END_TRIGGER_SQL)


def delete_recorded_ends() -> None:
    """Delete the recorded ends of trials that will run again."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM chaos_end")


def find_violations(runs: Sequence[WatchedRun]) -> list[Violation]:
    """Return the violations in these runs. Call `install_end_trigger` before the runs are launched."""
    run_ids = [run.run_id for run in runs]
    parameters = {
        "runs": run_ids,
        "sent": [run.sent for run in runs],
        "poisoned": [run.run_id for run in runs if run.poisoned],
        "away": [error.__name__ for error in UNAVAILABLE_ERRORS],
    }
    found = [Violation(kind, *row) for kind, query in _QUERY_BY_KIND.items() for row in _read_rows(query, parameters)]
    return found + _find_wrong_cells(run_ids)


def count_cells(run_ids: Sequence[int]) -> int:
    """Return the number of cells of these runs."""
    return Cell.objects.filter(run_id__in=run_ids).count()


def _read_rows(query: str, parameters: Mapping[str, Any]) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return list(cursor.fetchall())


def _find_wrong_cells(run_ids: Sequence[int]) -> list[Violation]:
    """Recount the cells of each run; return wrong cells, and runs that cannot be recounted, as violations."""
    found: list[Violation] = []
    for run_id in run_ids:
        try:
            found += _find_wrong_cells_of_run(run_id)
        except DataError as error:
            found.append(Violation("cell", run_id, f"its cells cannot be recounted: {error}"))
    return found


def _find_wrong_cells_of_run(run_id: int) -> list[Violation]:
    """Return a violation for each cell with a column that a recount changes. The recount is rolled back.

    Raises:
        DataError: the database cannot store the counts.
    """
    with transaction.atomic():
        cells = Cell.objects.filter(run_id=run_id).select_for_update(no_key=True).order_by("pk")
        before = _read_columns(cells)
        recompute(list(before))
        after = _read_columns(cells)
        transaction.set_rollback(True)
    return [
        Violation("cell", run_id, f"cell {cell}: {'; '.join(changed[:_MAX_LISTED_COLUMNS])}")
        for cell, columns in after.items()
        if (changed := _list_changes(before[cell], columns))
    ]


def _list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {before[name]}, recounted {value}"
        for name, value in after.items()
        if not _is_same(before[name], value)
    ]


def _read_columns(cells: QuerySet[Cell]) -> dict[int, dict[str, Any]]:
    names = [column.attname for column in Cell._meta.concrete_fields]
    found = {cell.pk: {name: getattr(cell, name) for name in names} for cell in cells.all()}
    times = CellTimes.objects.filter(cell__in=list(found)).values("cell_id", "durations", "first_tokens", "longest_ms")
    return {pk: columns | next((row for row in times if row["cell_id"] == pk), {}) for pk, columns in found.items()}


def _is_same(one: Any, other: Any) -> bool:
    """Compare values; sums of floats may differ in the last digits, since rows are added in any order."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)
