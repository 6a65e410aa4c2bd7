-- Count up to `wanted` requests against the caps of a run.
--
-- What is counted is on disk before it is sent, also at a server that does not wait for the disk otherwise. That
-- holds without a cap too: a trial that was claimed without one may still send when a cap is set, and what a crash
-- made the server forget would be sent beyond it.
-- Parameters: run, wanted.
-- Returns: the number granted and the state of the run.
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
