-- Set finished runs with trials that are not done to running; deleted runs stay finished.
--
-- Returns: the ids of the runs.
UPDATE lab_run AS run SET finished_at = NULL, state = 'running', stopped_reason = ''
WHERE state = 'finished' AND deleted_at IS NULL AND id IN (SELECT run_id FROM lab_trial WHERE state <> 'done')
RETURNING id
