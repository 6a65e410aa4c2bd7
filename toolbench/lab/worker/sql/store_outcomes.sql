-- Store the outcome of trials and end them; mark their cells stale.
--
-- No trial ends while one of its steps is missing: a server that crashed may have lost commits that it had
-- acknowledged.
-- Parameters: one JSON array of rows.
-- Parts: typed: the columns with their types; assignments: the assignments of these columns. A column without a value
-- in the row keeps its value.
-- Returns: trial and run of each trial that ended, and each incomplete trial with NULL.
-- Locks: trials, then cells by id. A cell that is stale already is not written again. It is locked nevertheless, since
-- a count must not begin before this transaction has ended. `locked` reads `stale` after the wait for the cell's lock.
-- Planner: "IS TRUE" makes PostgreSQL look up trials by id. Otherwise it may compare each outcome with each running
-- trial.
WITH held AS (
    SELECT row.*, row.steps <= (SELECT count(*) FROM lab_step AS step
        WHERE step.trial_id = trial.id AND step.execution = trial.execution) AS complete
    FROM json_to_recordset(%s::json) AS row(
        trial_id bigint, lease uuid, steps integer, {typed})
    JOIN lab_trial AS trial ON trial.id = row.trial_id AND trial.lease = row.lease AND trial.state = 'running'
), ended AS (
    UPDATE lab_trial AS trial SET state = 'done', finished_at = clock_timestamp(), lease = NULL, lease_until = NULL,
        backing_off = false, text_stale = true,
        {assignments}
    FROM held AS row
    WHERE trial.id = row.trial_id AND trial.lease = row.lease AND (trial.state = 'running') IS TRUE AND row.complete
    RETURNING trial.id, trial.run_id, trial.cell_id
), locked AS (
    SELECT id, stale FROM lab_cell WHERE id IN (SELECT cell_id FROM ended) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE lab_cell AS cell SET stale = true FROM locked WHERE cell.id = locked.id AND NOT locked.stale
)
SELECT id, run_id FROM ended UNION ALL SELECT trial_id, NULL FROM held WHERE NOT complete
