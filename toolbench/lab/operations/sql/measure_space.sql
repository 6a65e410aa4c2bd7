-- Measure the space of tables, of the database, and count the trials that take it.
--
-- A planned trial has a row, so the counts of runs stand for the trials. Imported runs do not count as growth.
-- Parameters: tables: names of tables; days: number of days that count as recent.
-- Returns: one row: bytes by existing table as JSON, bytes of the database, trials, trials of recent runs.
-- Locks: none.
SELECT
    (
        SELECT coalesce(jsonb_object_agg(name, pg_total_relation_size(to_regclass(name))), '{}')
        FROM unnest(%(tables)s::text[]) AS listed(name)
        WHERE to_regclass(name) IS NOT NULL
    ),
    pg_database_size(current_database()),
    coalesce(sum(trial_count), 0),
    coalesce(sum(trial_count) FILTER (
        WHERE NOT imported AND created_at > clock_timestamp() - %(days)s * interval '1 day'
    ), 0)
FROM lab_run
