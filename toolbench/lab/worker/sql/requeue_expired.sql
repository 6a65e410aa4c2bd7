-- Requeue running trials whose lease has expired.
--
-- Returns: the cell of each trial.
-- Locks: trials. A trial that another transaction has locked, even if it only stores steps of it (store_steps.sql), is
-- skipped; the next call requeues it.
WITH lost AS (
    SELECT id FROM lab_trial WHERE state = 'running' AND lease_until < clock_timestamp()
    FOR UPDATE SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'queued', lease = NULL, lease_until = NULL, backing_off = false
FROM lost WHERE trial.id = lost.id RETURNING trial.cell_id
