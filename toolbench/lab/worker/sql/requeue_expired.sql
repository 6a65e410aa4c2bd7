-- Requeue running trials whose lease has expired.
--
-- Returns: the cell of each trial.
-- Locks: trials; trials that another transaction has locked are skipped; the next call requeues them.
WITH lost AS (
    SELECT id FROM lab_trial WHERE state = 'running' AND lease_until < clock_timestamp()
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'queued', lease = NULL, lease_until = NULL, backing_off = false
FROM lost WHERE trial.id = lost.id RETURNING trial.cell_id
