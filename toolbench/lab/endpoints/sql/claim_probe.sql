-- Claim a queued probe, if no other probe of its provider runs.
--
-- Parameters: seconds of the lease, name of the process, id of the probe.
-- Returns: the columns of ClaimedProbe; no row if the probe was not claimed.
-- Locks: the probe; the caller has locked the slots of its provider.
UPDATE lab_probe AS probe SET state = 'running', execution = execution + 1, lease = gen_random_uuid(), checks = '[]',
    lease_until = clock_timestamp() + make_interval(secs => %s), worker = %s, started_at = clock_timestamp()
WHERE id = %s AND state = 'queued' AND NOT EXISTS (
    SELECT 1 FROM lab_probe AS other WHERE other.provider_id = probe.provider_id AND other.state = 'running')
RETURNING id, model_id, provider_id, kind, execution, lease
