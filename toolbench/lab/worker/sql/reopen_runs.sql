-- Set the state of finished runs to running if they have trials that are not done; deleted runs stay finished.
--
-- Returns: the ids of the runs.
UPDATE lab_run AS run SET finished_at = NULL, state = 'running', stopped_reason = ''
WHERE state = 'finished' AND deleted_at IS NULL AND id IN (SELECT run_id FROM lab_trial WHERE state <> 'done')
RETURNING id
