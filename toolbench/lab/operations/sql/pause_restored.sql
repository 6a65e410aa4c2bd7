-- Stop all work in a restored database that would send requests or messages, and delete the heartbeats in the backup.
--
-- Runs and schedules are paused, probes end as failed, and deliveries become unclear.
-- This is a script of psql, which runs it in the transaction that loads the backup. The backup may be of an earlier
-- version, in which tables are missing: those of probes, and those of schedules and deliveries.
-- Parameters: reason: a variable of psql: why runs, probes and deliveries were stopped.
-- Returns: one row: number of paused runs, number of paused schedules.
-- Locks: none that matter, since no other process uses the database.
SELECT
    to_regclass('public.lab_probe') IS NOT NULL AS has_probes,
    to_regclass('public.lab_schedule') IS NOT NULL AS has_schedules
\gset
DELETE FROM public.lab_process;
WITH paused AS (
    UPDATE public.lab_run SET state = 'paused', stopped_reason = :'reason'
    WHERE state = 'running' AND deleted_at IS NULL
    RETURNING id
)
SELECT count(*) AS paused_runs FROM paused
\gset
\set paused_schedules 0
\if :has_probes
    UPDATE public.lab_probe
    SET state = 'done', ok = false, sentence = :'reason', finished_at = clock_timestamp(),
        lease = NULL, lease_until = NULL
    WHERE state <> 'done';
\endif
\if :has_schedules
    WITH paused AS (UPDATE public.lab_schedule SET active = false WHERE active RETURNING id)
    SELECT count(*) AS paused_schedules FROM paused
    \gset
    UPDATE public.lab_alertdelivery SET state = 'unclear', last_error = :'reason'
    WHERE state IN ('pending', 'sending');
\endif
SELECT :paused_runs, :paused_schedules;
