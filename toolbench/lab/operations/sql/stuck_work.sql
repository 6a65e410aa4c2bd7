-- Select work that a sweep should have repaired, and the providers whose next trial waits too long.
--
-- A provider waits if three conditions hold: a running run has a queued trial of the provider, whose configuration
-- awaits no probe; no trial of the provider is running; the rate control does not hold the provider's requests.
-- Of each run, only the first such trial is read, in the order in which trials are claimed.
-- Parameters: settle_seconds: time that sweeps have for a repair; wait_seconds: time after which a wait is listed.
-- Returns: one row: number of stale cells of runs that ended more than settle_seconds ago, number of running trials
-- whose lease expired more than settle_seconds ago, waiting providers as JSON, the database's time.
-- Locks: none.
SELECT
    (
        SELECT count(*)
        FROM lab_cell AS cell
        JOIN lab_run AS run ON run.id = cell.run_id
        WHERE cell.stale AND run.deleted_at IS NULL
            AND run.finished_at < clock_timestamp() - %(settle_seconds)s * interval '1 second'
    ),
    (
        SELECT count(*)
        FROM lab_trial
        WHERE state = 'running' AND lease_until < clock_timestamp() - %(settle_seconds)s * interval '1 second'
    ),
    (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'name', provider.name,
            'waiting_seconds', extract(epoch FROM clock_timestamp() - next.queued_at)::float8,
            'reason', provider.paused_reason
        ) ORDER BY provider.name), '[]')
        FROM lab_provider AS provider
        CROSS JOIN LATERAL (
            SELECT min(first_of_run.queued_at) AS queued_at
            FROM lab_run AS run
            CROSS JOIN LATERAL (
                SELECT trial.queued_at
                FROM lab_trial AS trial
                JOIN lab_runconfig AS config ON config.id = trial.config_id AND NOT config.awaits_probe
                WHERE trial.provider_id = provider.id AND trial.run_id = run.id AND trial.state = 'queued'
                ORDER BY trial.position
                LIMIT 1
            ) AS first_of_run
            WHERE run.state = 'running' AND run.deleted_at IS NULL
        ) AS next
        WHERE next.queued_at < clock_timestamp() - %(wait_seconds)s * interval '1 second'
            AND NOT EXISTS (
                SELECT 1 FROM lab_trial AS running
                WHERE running.state = 'running' AND running.provider_id = provider.id
            )
            AND NOT EXISTS (
                SELECT 1 FROM lab_providerpace AS pace
                WHERE provider.adaptive AND pace.provider_id = provider.id AND pace.held_until > clock_timestamp()
            )
    ),
    clock_timestamp()
