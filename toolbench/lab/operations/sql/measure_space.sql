-- Measure the space of tables and of the database, and count the trials and the gateway traces.
--
-- The number of all traces is the planner's estimate, but at least the number of recent ones.
-- Every planned trial has a row, so the number of trials is the sum of `trial_count`. Imported runs do not count as
-- recent.
-- Parameters: tables: names of tables; days: number of days that count as recent; trace_days: age at which traces are
-- deleted, 0 for never.
-- Returns: one row: bytes by name of each existing table as JSON, bytes of the database, trials, trials of recent runs,
-- recent traces, traces that will be deleted in the next `days` days, all traces, folder of the database (null if the
-- user may not read it).
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
    ), 0),
    recent.traces,
    (
        SELECT count(*) FROM lab_gatewaytrace
        WHERE %(trace_days)s > 0 AND at < clock_timestamp() - (%(trace_days)s - %(days)s) * interval '1 day'
    ),
    greatest(recent.traces, (SELECT reltuples::bigint FROM pg_class WHERE oid = 'lab_gatewaytrace'::regclass)),
    (SELECT setting FROM pg_settings WHERE name = 'data_directory')
FROM lab_run
RIGHT JOIN (
    SELECT count(*) AS traces FROM lab_gatewaytrace WHERE at > clock_timestamp() - %(days)s * interval '1 day'
) AS recent ON true
GROUP BY recent.traces
