-- Count the first requests of claimed trials against the request limit of their run, all or none.
--
-- None is counted if the run has a token limit or no request limit.
-- Parameters: run; wanted: number of requests; spare: number of requests that must remain.
-- Returns: the run if the requests were counted, else no row.
UPDATE lab_run SET requests_reserved = requests_reserved + %(wanted)s
WHERE id = %(run)s AND token_cap IS NULL AND request_cap - requests_reserved >= %(wanted)s + %(spare)s
RETURNING id
