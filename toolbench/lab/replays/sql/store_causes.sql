-- Replace the causes of trials, unless they were executed again or lost their bodies in the meantime.
--
-- Parameters: one JSON array of rows, each with the trial's id and execution and a value for each column of causes.
-- Parts: assignments: the assignments of the columns of causes; typed: these columns with their types.
-- Returns: the cell id of each changed trial.
-- Locks: trials, in no order.
UPDATE lab_trial AS trial SET {assignments}
FROM json_to_recordset(%s::json) AS row(id bigint, execution integer,
    {typed})
WHERE trial.id = row.id AND trial.state = 'done' AND trial.execution = row.execution
    AND trial.bodies_removed_at IS NULL
RETURNING trial.cell_id
