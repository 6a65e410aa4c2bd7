-- Store the causes of trials anew, if they were not executed again meanwhile.
--
-- Parameters: one JSON array of rows.
-- Parts: assignments: what is set; typed: the columns with their types.
-- Returns: the cell of each trial.
UPDATE lab_trial AS trial SET {assignments}
FROM json_to_recordset(%s::json) AS row(id bigint, execution integer,
    {typed})
WHERE trial.id = row.id AND trial.state = 'done' AND trial.execution = row.execution
RETURNING trial.cell_id
