-- Extend the leases of running trials.
--
-- Parameters: seconds, ids of the trials, their leases.
-- Returns: the leases that are still held.
UPDATE lab_trial AS trial SET lease_until = clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease)
WHERE trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
RETURNING trial.lease
