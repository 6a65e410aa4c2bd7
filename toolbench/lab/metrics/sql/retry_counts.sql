-- Fragment: for each trial, its answers with status 429 and 5xx, its retries, its back-off in milliseconds, and whether
-- the status of a step is unknown.
--
-- The condition on steps is that of the index retry_steps; a trial without such a step has no row. Why the index is
-- searched for an array of trials is said in recompute_cells.sql.
-- Needs: `trials`, rows of lab_trial.
-- Parts: is_429, is_5xx, without_status: conditions on `step`.
    SELECT step.trial_id AS id, count(*) FILTER (WHERE {is_429}) AS answers_429,
        count(*) FILTER (WHERE {is_5xx}) AS answers_5xx, count(*) FILTER (WHERE step.attempt > 1) AS retries,
        sum(step.backoff_ms) AS backoff_ms, bool_or({without_status}) AS without_status
    FROM lab_step AS step WHERE step.trial_id = ANY(ARRAY(SELECT id FROM trials)) AND step.kind = 'exchange'
        AND (step.attempt > 1 OR NOT step.ok OR step.ok IS NULL OR step.status IS NULL)
    GROUP BY step.trial_id
