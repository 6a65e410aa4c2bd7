-- End those of the runs locked by lock_finished_runs.sql that still meet the condition of is_run_finished.sql.
--
-- Parameters: ids of the runs.
-- Parts: is_finished: the condition of is_run_finished.sql.
-- Returns: ids of the runs that ended.
UPDATE lab_run AS run SET finished_at = clock_timestamp(),
    state = CASE WHEN state = 'cancelling' THEN 'cancelled' ELSE 'finished' END
WHERE id = ANY(%s) AND {is_finished} RETURNING id
