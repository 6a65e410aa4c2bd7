-- Requeue running trials that cannot continue now; their steps stay as steps of a lost execution.
--
-- Parameters: ids of the trials during which the local server died; ids of all trials; leases of all trials.
-- Returns: id, run and cell of each trial whose lease was still held.
UPDATE lab_trial AS trial SET state = 'queued', queued_at = clock_timestamp(), lease = NULL, lease_until = NULL,
    backing_off = false, server_losses = server_losses + (trial.id = ANY(%s::bigint[]))::int
FROM unnest(%s::bigint[], %s::uuid[]) AS held(id, lease)
WHERE trial.id = held.id AND trial.lease = held.lease AND trial.state = 'running'
RETURNING trial.id, trial.run_id, trial.cell_id
