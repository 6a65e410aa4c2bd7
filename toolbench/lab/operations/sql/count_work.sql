-- Count runs, trials, cells and jobs for metrics, and find the longest wait of a next trial at each provider.
--
-- Ended trials are summed from the counts of cells, since reading all trials takes too long.
-- Parameters: none.
-- Returns: one row for each metric and combination of labels: name, values of the labels, value.
-- Locks: none.
SELECT 'runs', ARRAY[state], count(*)::float8 FROM lab_run WHERE deleted_at IS NULL GROUP BY state
UNION ALL
SELECT 'open_trials', ARRAY[trial.state], count(*)
FROM lab_trial AS trial
JOIN lab_run AS run ON run.id = trial.run_id AND run.deleted_at IS NULL
WHERE trial.state <> 'done'
GROUP BY trial.state
UNION ALL
SELECT 'in_flight', ARRAY[provider.name], count(*)
FROM lab_trial AS trial
JOIN lab_provider AS provider ON provider.id = trial.provider_id
WHERE trial.state = 'running'
GROUP BY provider.name
UNION ALL
SELECT 'ended_trials', ARRAY[counted.outcome, CASE WHEN sums.simulated THEN '1' ELSE '0' END], counted.trials
FROM (
    SELECT run.simulated, sum(cell.passed) AS passed, sum(cell.failed) AS failed, sum(cell.infra) AS infra
    FROM lab_cell AS cell
    JOIN lab_run AS run ON run.id = cell.run_id AND run.deleted_at IS NULL AND NOT run.imported
    GROUP BY run.simulated
) AS sums
CROSS JOIN LATERAL (
    VALUES ('pass', sums.passed), ('fail', sums.failed), ('infra', sums.infra)
) AS counted(outcome, trials)
UNION ALL
SELECT 'stale_cells', ARRAY[]::text[], count(*) FROM lab_cell WHERE stale
UNION ALL
SELECT 'queue_age', ARRAY[provider.name], max(extract(epoch FROM clock_timestamp() - next.queued_at))
FROM lab_run AS run
CROSS JOIN lab_provider AS provider
CROSS JOIN LATERAL (
    SELECT trial.queued_at
    FROM lab_trial AS trial
    WHERE trial.provider_id = provider.id AND trial.run_id = run.id AND trial.state = 'queued'
    ORDER BY trial.position
    LIMIT 1
) AS next
WHERE run.state = 'running' AND run.deleted_at IS NULL
GROUP BY provider.name
UNION ALL
SELECT 'jobs', ARRAY[]::text[], count(*) FROM lab_replay WHERE state = 'queued'
