-- Queue running trials again whose lease ran out.
--
-- Returns: the cell of each trial.
-- Locks: trials; those that another transaction changes are left for the next time.
WITH lost AS (
    SELECT id FROM lab_trial WHERE state = 'running' AND lease_until < clock_timestamp()
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'queued', lease = NULL, lease_until = NULL, backing_off = false
FROM lost WHERE trial.id = lost.id RETURNING trial.cell_id
