-- Count up to `wanted` requests against the limits of a run.
--
-- The count is on disk before the requests are sent, even if the server otherwise commits asynchronously: requests
-- whose count a crash lost would be sent beyond the limit. This applies to runs without a limit too, since a limit may
-- be set while their trials run.
-- Parameters: run; wanted.
-- Returns: the number granted and the state of the run; no row if the run does not exist.
-- Locks: the run.
WITH before AS (
    SELECT id, state, set_config('synchronous_commit', 'on', true),
        CASE WHEN state NOT IN ('running', 'paused') OR tokens_used >= token_cap THEN 0
             ELSE greatest(0, least(%(wanted)s, coalesce(request_cap - requests_reserved, %(wanted)s))) END AS granted
    FROM lab_run WHERE id = %(run)s FOR NO KEY UPDATE
)
UPDATE lab_run AS run SET requests_reserved = run.requests_reserved + before.granted
FROM before WHERE run.id = before.id
RETURNING before.granted, before.state
