-- Count the first requests of claimed trials against the cap of their run, all or none.
--
-- Parameters: run; wanted: requests; spare: requests that must be left.
-- Returns: the run, if they were counted.
UPDATE lab_run SET requests_reserved = requests_reserved + %(wanted)s
WHERE id = %(run)s AND token_cap IS NULL AND request_cap - requests_reserved >= %(wanted)s + %(spare)s
RETURNING id
