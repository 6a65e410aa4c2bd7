-- Lock the runs that are finished. A transaction that requeues trials locks their run, so finish_runs.sql, which is
-- executed after this statement, sees those trials.
--
-- Parts: is_finished: the condition of is_run_finished.sql.
-- Returns: the ids of the runs.
-- Locks: runs by id.
SELECT id FROM lab_run AS run WHERE {is_finished} ORDER BY id FOR NO KEY UPDATE
