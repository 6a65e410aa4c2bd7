-- Raise counts of requests that are below the number of stored attempts.
--
-- The column `requests` of a cell is the number of its stored attempts, those of lost executions included. If a cell
-- could not be computed, its attempts are counted here. A sum that exceeds the range of the column is limited to the
-- maximum of the column, so that one run does not make the statement fail for the others.
-- Parameters: run: an id, or NULL for every run in one of the states `open`.
-- Returns: ids of the corrected runs.
-- Locks: runs by id.
WITH stored AS (
    SELECT run_id, least(sum(CASE WHEN compute_error = '' THEN requests ELSE (
        SELECT count(*) FROM lab_trial AS trial JOIN lab_step AS step ON step.trial_id = trial.id
        WHERE trial.cell_id = cell.id AND step.kind = 'exchange') END), 2147483647) AS requests
    FROM lab_cell AS cell
    WHERE run_id IN (SELECT id FROM lab_run WHERE id = %(run)s OR %(run)s IS NULL AND state = ANY(%(open)s))
    GROUP BY run_id
), low AS (
    SELECT run.id, stored.requests FROM lab_run AS run JOIN stored ON stored.run_id = run.id
    WHERE run.requests_reserved < stored.requests ORDER BY run.id FOR NO KEY UPDATE OF run
)
UPDATE lab_run AS run SET requests_reserved = greatest(run.requests_reserved, low.requests)
FROM low WHERE run.id = low.id RETURNING run.id
