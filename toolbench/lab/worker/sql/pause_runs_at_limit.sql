-- Pause running runs that reached a limit and have queued trials; store the reason.
--
-- Returns: the ids of the paused runs.
-- Locks: the runs.
UPDATE lab_run AS run SET state = 'paused', stopped_reason = CASE
    WHEN requests_reserved >= request_cap
        THEN format('The limit of %s requests is reached. Raise the limit and resume.', request_cap)
    ELSE format('The limit of %s tokens is reached. Raise the limit and resume.', token_cap) END
WHERE state = 'running' AND (requests_reserved >= request_cap OR tokens_used >= token_cap)
    AND EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state = 'queued')
RETURNING id
