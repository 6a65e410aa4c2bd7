-- Replace the causes of trials, unless they were executed again or lost their bodies in the meantime.
--
-- Parameters: one JSON array of rows.
-- Parts: assignments: the assignments of columns; typed: the columns with their types.
-- Returns: the cell of each changed trial.
-- Locks: trials, in no order.
UPDATE lab_trial AS trial SET {assignments}
FROM json_to_recordset(%s::json) AS row(id bigint, execution integer,
    {typed})
WHERE trial.id = row.id AND trial.state = 'done' AND trial.execution = row.execution
    AND trial.bodies_removed_at IS NULL
RETURNING trial.cell_id
