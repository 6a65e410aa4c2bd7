-- Count the trials of a matrix's rows that failed or had an infrastructure error, by scenario version and category, and
-- read the times of those without an answer.
--
-- The index failed_trials has all columns, so that no row of the table is read.
-- Parameters: configs: ids of configurations; rows: for each of them, the index of its row of the matrix.
-- Returns: row, scenario, version, category, number of trials, milliseconds of those without an answer or null.
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
