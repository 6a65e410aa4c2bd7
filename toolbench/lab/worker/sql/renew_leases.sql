-- Extend the leases of running trials.
--
-- Parameters: ids of the trials, their leases; seconds.
-- Returns: the leases that are still held.
-- Locks: trials by id. take_over_slots.sql locks them in the same order, since a batch that stores trials of the same
-- worker may run at the same time.
WITH locked AS (
    SELECT trial.id FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease) JOIN lab_trial AS trial
        ON trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
    ORDER BY trial.id FOR NO KEY UPDATE OF trial
)
UPDATE lab_trial AS trial SET lease_until = clock_timestamp() + make_interval(secs => %s)
FROM locked WHERE trial.id = locked.id RETURNING trial.lease
