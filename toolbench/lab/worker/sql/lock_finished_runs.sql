-- Lock the runs that are finished. A transaction that queues trials again holds their run: the statement that ends the
-- runs comes after this one and sees those trials.
--
-- Parts: is_finished: the condition of is_run_finished.sql.
-- Returns: their ids.
-- Locks: runs by id.
SELECT id FROM lab_run AS run WHERE {is_finished} ORDER BY id FOR NO KEY UPDATE
