-- End runs that were locked, if they are still finished.
--
-- Parameters: ids of the runs.
-- Parts: is_finished: the condition of is_run_finished.sql.
-- Returns: ids of those that ended.
UPDATE lab_run AS run SET finished_at = clock_timestamp(),
    state = CASE WHEN state = 'cancelling' THEN 'cancelled' ELSE 'finished' END
WHERE id = ANY(%s) AND {is_finished} RETURNING id
