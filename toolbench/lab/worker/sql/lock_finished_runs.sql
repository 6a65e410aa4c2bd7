-- Lock the runs that are finished, before finish_runs.sql ends them.
--
-- A transaction that queues trials again locks their run too. This statement waits for it, so finish_runs.sql, which is
-- executed next, sees those trials.
-- Parts: is_finished: the condition of is_run_finished.sql.
-- Returns: the ids of the runs.
-- Locks: runs by id.
SELECT id FROM lab_run AS run WHERE {is_finished} ORDER BY id FOR NO KEY UPDATE
