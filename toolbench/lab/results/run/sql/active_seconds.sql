-- Compute the seconds during which at least one trial of a run was running: the length of the union of the trials'
-- spans.
--
-- The part of a span that overlaps with spans that started before it is not counted again.
-- Parameters: id of the run.
-- Returns: seconds, or NULL without a finished trial.
WITH spans AS (
    SELECT started_at, finished_at, max(finished_at) OVER (
        ORDER BY started_at, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_before
    FROM lab_trial WHERE run_id = %s AND execution > 0 AND finished_at >= started_at
)
SELECT extract(epoch FROM sum(finished_at - greatest(started_at, ended_before))
    FILTER (WHERE ended_before IS NULL OR finished_at > ended_before))::float8 FROM spans
