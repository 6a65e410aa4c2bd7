-- Record that a worker claims trials of a provider, and compute its share of the provider's slots.
--
-- A worker whose row is older than `timeout` does not count. If every run with queued trials has its own limit of
-- trials in flight, and the sum of these limits is lower than the provider's limit, the sum is shared instead. The
-- slots are shared only while at least twice as many trials are queued. Once none is queued, another worker has no more
-- trials for its share, while trials that this worker claimed ahead wait for slots.
-- Parameters: provider; worker: name of the process; timeout: seconds.
-- Parts: limit: the concurrency limit of `provider` with its `pace`.
-- Returns: number of workers that claim, this one included; most slots that this worker may hold, NULL for all. No row
-- if the provider was deleted.
-- Locks: the row of this worker.
WITH recorded AS (
    INSERT INTO lab_claimingworker (provider_id, worker, seen_at)
    SELECT id, %(worker)s, clock_timestamp() FROM lab_provider WHERE id = %(provider)s
    ON CONFLICT (provider_id, worker) DO UPDATE SET seen_at = clock_timestamp()
), workers AS (
    SELECT 1 + count(*) AS number FROM lab_claimingworker
    WHERE provider_id = %(provider)s AND worker <> %(worker)s
        AND seen_at > clock_timestamp() - make_interval(secs => %(timeout)s)
), total AS (
    SELECT {limit} AS slots
    FROM lab_provider AS provider LEFT JOIN lab_providerpace AS pace ON pace.provider_id = provider.id
    WHERE provider.id = %(provider)s
), runs AS (
    SELECT run.id, coalesce(run.jobs, total.slots) AS slots FROM lab_run AS run, total
    WHERE run.state = 'running' AND run.deleted_at IS NULL AND EXISTS (
        SELECT 1 FROM lab_trial WHERE run_id = run.id AND provider_id = %(provider)s AND state = 'queued')
), shared AS (
    SELECT least(total.slots, (SELECT sum(slots) FROM runs)) AS slots FROM total
), queued AS (
    SELECT 1 FROM runs JOIN lab_trial AS trial ON trial.run_id = runs.id
    WHERE trial.provider_id = %(provider)s AND trial.state = 'queued' LIMIT (SELECT 2 * slots FROM shared)
)
SELECT number, CASE WHEN number > 1 AND (SELECT count(*) FROM queued) >= 2 * slots
    THEN ceil(slots::float8 / number)::int END
FROM workers, shared
