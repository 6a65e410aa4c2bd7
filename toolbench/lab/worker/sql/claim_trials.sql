-- Claim up to `max_trials` queued trials of one provider and count their first requests.
--
-- Slots: a claimed probe counts as one slot, even while it still waits for a free one. A trial whose lease is in
-- `finished_leases` has ended, and its slot is free, although its outcome is not stored yet. A worker holds at most
-- `share` slots; "least" ignores NULL.
-- Order: runs with the fewest claimed trials that have not ended come first; then the runs take turns.
-- Limits of a run: at each provider, the run has no more claimed trials than its own limit (`jobs`), including trials
-- that back off. With a request limit, the remaining requests have to suffice for the run's trials in flight at each
-- provider, so that the limit seldom stops trials half-way; one trial is always allowed. The expected number of
-- requests of a trial is the mean of the run's finished trials, and 3 before the first has finished.
-- Not claimed: trials whose local server is not ready, or whose configuration waits for a probe; all trials of a
-- provider with an adaptive limit while the rate control holds its requests.
-- Isolation: a trial that lost its local server or its lease `isolate_after` times is claimed only while no other trial
-- of the provider and no other such trial of any provider runs, and no trial of the provider is claimed beside it. If
-- the server or the worker then dies again, no other trial can be the cause.
-- Claims ahead: beside the trials for which a slot is free, up to `ahead` trials are claimed that hold no slot. Each
-- waits for the slot of a trial of the same worker. No trial is claimed ahead
-- - while a probe or a trial that returns from back-off needs a slot, or while the worker holds more than its share;
-- - if the limit is adaptive, or if the provider has no address of its own, since its local server may get a new one;
-- - while a run with queued trials has a limit of trials in flight, has a token limit or is near its request limit: the
--   next free slot must then go to a trial of that run.
-- Planner: "IS TRUE" excludes a plan that reads all queued trials by their index for each claimed one. PostgreSQL would
-- choose this plan while the table has no statistics.
-- Parts: limit: the concurrency limit of `provider` with its `pace`.
-- Parameters: provider; max_trials; finished_leases; unstored_leases: of trials that have ended; reserved_slots: slots
-- for trials that return from back-off; share: most slots of this worker, NULL for all; ahead; spare_requests: requests
-- that must be left for each trial in flight if trials are claimed ahead; isolated: whether only trials that must run
-- alone are claimed; isolate_after; lease: seconds; worker: name of the process; first_requests: requests to count for
-- each trial of a run without limits.
-- Returns: the fields of ClaimedTrial up to `reserved_requests`.
-- Locks: call it under the provider's advisory lock; then trials, then cells by id, then runs by id. A cell that is
-- stale already is locked and not written again (store_outcomes.sql).
WITH busy AS (
    SELECT run_id,
        count(*) FILTER (WHERE NOT backing_off AND lease <> ALL(%(finished_leases)s::uuid[])) AS trials,
        count(*) FILTER (WHERE NOT backing_off AND lease <> ALL(%(finished_leases)s::uuid[]) AND worker = %(worker)s)
            AS own,
        count(*) FILTER (WHERE lease <> ALL(%(unstored_leases)s::uuid[])) AS claimed
    FROM lab_trial WHERE state = 'running' AND provider_id = %(provider)s GROUP BY run_id
), provider_state AS (
    SELECT total.trials AS in_flight, {limit} AS capacity, provider.adaptive OR provider.base_url = '' AS is_changing,
        least({limit} - total.trials - total.probes - %(reserved_slots)s, %(share)s::int - total.own) AS vacant,
        NOT EXISTS (SELECT 1 FROM lab_trial WHERE provider_id = %(provider)s AND state = 'running'
            AND (%(isolated)s OR greatest(server_losses, lease_losses) >= %(isolate_after)s))
        AND NOT (%(isolated)s AND EXISTS (SELECT 1 FROM lab_trial WHERE state = 'running'
            AND greatest(server_losses, lease_losses) >= %(isolate_after)s))
        AND NOT (provider.adaptive AND coalesce(pace.held_until > clock_timestamp(), false)) AS is_open
    FROM lab_provider AS provider LEFT JOIN lab_providerpace AS pace ON pace.provider_id = provider.id,
        (SELECT coalesce(sum(trials), 0)::int AS trials, coalesce(sum(own), 0)::int AS own,
        (SELECT count(*)::int FROM lab_probe WHERE provider_id = %(provider)s AND state = 'running') AS probes FROM busy) AS total
    WHERE provider.id = %(provider)s
), slots AS (
    SELECT in_flight, CASE WHEN is_open THEN greatest(0, least(%(max_trials)s, vacant)) ELSE 0 END AS free,
        CASE WHEN %(ahead)s > 0 AND is_open AND vacant >= 0 AND NOT is_changing AND NOT EXISTS (
            SELECT 1 FROM lab_run AS run WHERE state = 'running' AND deleted_at IS NULL
                AND (jobs IS NOT NULL OR token_cap IS NOT NULL
                OR request_cap - requests_reserved < %(spare_requests)s * (capacity + %(max_trials)s))
                AND EXISTS (SELECT 1 FROM lab_trial
                    WHERE run_id = run.id AND provider_id = %(provider)s AND state = 'queued')
        ) THEN %(ahead)s ELSE 0 END AS ahead
    FROM provider_state
), limits AS (
    SELECT in_flight, free, least(%(max_trials)s, free + ahead) AS max_trials FROM slots
), queue AS (
    SELECT next.id, next.rank + coalesce(busy.claimed, 0) AS turn, run.id AS run_id,
        row_number() OVER (ORDER BY next.rank + coalesce(busy.claimed, 0), run.id) AS place
    FROM lab_run AS run
    LEFT JOIN busy ON busy.run_id = run.id
    CROSS JOIN LATERAL (
        SELECT greatest(1, coalesce(sum(requests)::float / nullif(sum(passed + failed + infra), 0), 3)) AS requests
        FROM lab_cell WHERE run_id = run.id AND run.request_cap IS NOT NULL
    ) AS trial_cost
    CROSS JOIN LATERAL (
        SELECT CASE WHEN run.request_cap IS NOT NULL THEN greatest(0, greatest(1,
            floor((run.request_cap - run.requests_reserved) / trial_cost.requests)::int) - coalesce(busy.trials, 0)
        ) END AS trials
    ) AS affordable
    CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY position) AS rank FROM lab_trial AS trial
        WHERE run_id = run.id AND provider_id = %(provider)s AND state = 'queued'
            AND (greatest(server_losses, lease_losses) >= %(isolate_after)s) = %(isolated)s AND NOT EXISTS (
            SELECT 1 FROM lab_runconfig AS config WHERE config.id = trial.config_id AND (config.awaits_probe
            OR config.service <> '' AND NOT EXISTS (
                SELECT 1 FROM lab_serviceaddress AS address WHERE address.name = config.service)))
        ORDER BY position LIMIT least((SELECT max_trials FROM limits), affordable.trials,
            CASE WHEN run.jobs IS NOT NULL THEN greatest(0, run.jobs - coalesce(busy.claimed, 0)) END)
    ) AS next
    WHERE run.state = 'running' AND run.deleted_at IS NULL AND (run.requests_reserved < run.request_cap) IS NOT FALSE
        AND (run.tokens_used < run.token_cap) IS NOT FALSE AND (SELECT max_trials FROM limits) > 0
    ORDER BY turn, run_id LIMIT (SELECT max_trials FROM limits)
), free AS (
    SELECT trial.id, queue.place FROM lab_trial AS trial JOIN queue USING (id)
    WHERE (trial.state = 'queued') IS TRUE FOR NO KEY UPDATE OF trial SKIP LOCKED
), claimed AS (
    UPDATE lab_trial AS trial SET state = 'running', execution = execution + 1, lease = gen_random_uuid(),
        lease_until = clock_timestamp() + make_interval(secs => %(lease)s), worker = %(worker)s,
        backing_off = free.place > limits.free, started_at = clock_timestamp(),
        concurrency = limits.in_flight + least(limits.free, (SELECT count(*) FROM free))
    FROM free, limits WHERE trial.id = free.id
    RETURNING trial.id, trial.run_id, trial.config_id, trial.cell_id, trial.execution, trial.lease, trial.scenario,
        trial.scenario_version, trial.instance_kind, trial.instance_seed, trial.seed, trial.concurrency,
        trial.server_losses, trial.backing_off
), locked AS (
    SELECT id, stale FROM lab_cell WHERE id IN (SELECT cell_id FROM claimed) ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE lab_cell AS cell SET stale = true FROM locked WHERE cell.id = locked.id AND NOT locked.stale
), counted AS (
    UPDATE lab_run AS run SET requests_reserved = run.requests_reserved
        + %(first_requests)s * (SELECT count(*) FROM claimed WHERE claimed.run_id = run.id)
    WHERE (SELECT count(*) FROM locked) > 0 AND id IN (
        SELECT id FROM lab_run WHERE id IN (SELECT run_id FROM claimed)
            AND request_cap IS NULL AND token_cap IS NULL ORDER BY id FOR NO KEY UPDATE)
    RETURNING id
)
SELECT claimed.*, CASE WHEN counted.id IS NULL THEN 0 ELSE %(first_requests)s END
FROM claimed LEFT JOIN counted ON counted.id = claimed.run_id
