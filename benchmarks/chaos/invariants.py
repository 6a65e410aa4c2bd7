"""What must hold of every run after a round of chaos, asked in SQL. Needs Django and the stack's database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DataError, connection, transaction
from django.db.models import QuerySet

from toolbench.lab.metrics.cells import recompute
from toolbench.lab.models import Cell, CellTimes
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS

# Every end that a trial ever had, written by the database in the transaction of that end.
_WITNESS_SQL = """
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
SELECT run.id, format('%%s of %%s trials are there', count(trial.id), run.trial_count)
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

# Trials may wait only in a run that is paused and says why.
_QUEUED_QUERY = """
SELECT run.id, format('%%s trials wait in a run that is %%s, reason "%%s"', count(*), run.state, run.stopped_reason)
FROM lab_run AS run JOIN lab_trial AS trial ON trial.run_id = run.id AND trial.state = 'queued'
WHERE run.id = ANY(%(runs)s) AND (run.state <> 'paused' OR run.stopped_reason = '') GROUP BY run.id
UNION ALL
SELECT id, format('it is paused without a reason') FROM lab_run
WHERE id = ANY(%(runs)s) AND state = 'paused' AND stopped_reason = ''
"""

# Of no run that was given poisoned answers; of one that was, only what a provider cannot bring about.
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

# Counted here by other words than the product's own.
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

# Not of one run: a job belongs to the stack. Each is found once, by the run that is checked first after it. Faults of
# database and disk bring about errors of a database that is away, which counting may still catch.
_JOB_FAILURES_QUERY = """
DELETE FROM lab_jobfailure WHERE error <> ALL(%(away)s)
RETURNING (%(runs)s::bigint[])[1],
    format('%%s failed %%s times: %%s in %%s %%s', job, count, error, place, provider_name)
"""

_MAX_LISTED_COLUMNS = 5  # of a wrong cell that are named
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


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold of a run. `kind` is a key of the queries above."""

    kind: str
    run_id: int
    text: str


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A run to check. `sent` are the requests that its provider counted, None where nobody counted them."""

    run_id: int
    sent: int | None = None
    poisoned: bool = False


def install_witness() -> None:
    """Have the database note every end of a trial from now on."""
    with connection.cursor() as cursor:
        cursor.execute(_WITNESS_SQL)


def forget_ends() -> None:
    """Forget the ends of trials that are to run again."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM chaos_end")


def find_violations(runs: Sequence[WatchedRun]) -> list[Violation]:
    """Return what does not hold of these runs. `install_witness` has been called before they were launched."""
    run_ids = [run.run_id for run in runs]
    given = {
        "runs": run_ids,
        "sent": [run.sent for run in runs],
        "poisoned": [run.run_id for run in runs if run.poisoned],
        "away": [error.__name__ for error in UNAVAILABLE_ERRORS],
    }
    found = [Violation(kind, *row) for kind, query in _QUERY_BY_KIND.items() for row in _read_rows(query, given)]
    return found + _find_wrong_cells(run_ids)


def count_cells(run_ids: Sequence[int]) -> int:
    return Cell.objects.filter(run_id__in=run_ids).count()


def _read_rows(query: str, given: Mapping[str, Any]) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(query, given)
        return list(cursor.fetchall())


def _find_wrong_cells(run_ids: Sequence[int]) -> list[Violation]:
    """Recount the cells of each run; return what changes, and the runs whose cells cannot be recounted."""
    found: list[Violation] = []
    for run_id in run_ids:
        try:
            found += _find_wrong_cells_of_run(run_id)
        except DataError as error:
            found.append(Violation("cell", run_id, f"its cells cannot be recounted: {error}"))
    return found


def _find_wrong_cells_of_run(run_id: int) -> list[Violation]:
    """Return each cell of which a column changes by a recount, which is rolled back. Raises DataError."""
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
    """Sums of floats may differ in the last digits, since rows are added in any order."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)
