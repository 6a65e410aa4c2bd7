-- For each row of the matrix, count the trials that failed or had an infrastructure error, by scenario, version and
-- category, and read the durations of the trials without an answer.
--
-- The index failed_trials has all columns that are read, so that PostgreSQL need not read the table.
-- Parameters: configs: ids of configurations; rows: for each of them, the index of its row of the matrix.
-- Returns: index of the row; scenario; version; category; number of trials; array of the durations in milliseconds of
-- those trials that had no answer, null if there are none.
-- Locks: none.
SELECT
    member.row_index,
    trial.scenario,
    trial.scenario_version,
    trial.category,
    count(*),
    array_agg(trial.duration_ms) FILTER (
        WHERE trial.duration_ms IS NOT NULL AND (trial.outcome = 'infra' OR trial."end" = 'DEADLINE_EXCEEDED')
    )
FROM unnest(%(configs)s::bigint[], %(rows)s::integer[]) AS member (config_id, row_index)
JOIN lab_trial AS trial ON trial.config_id = member.config_id
WHERE trial.outcome IN ('fail', 'infra')
GROUP BY 1, 2, 3, 4
