-- Fragment: answers with status 429 and 5xx, retries and back-off of each trial. The condition on steps is that of the
-- index retry_steps. The steps are looked up for each trial, for the reason that recompute_cells.sql has.
--
-- Needs: `trials`, rows of lab_trial.
-- Parts: conditions on `step`.
    SELECT step.trial_id AS id, count(*) FILTER (WHERE {is_429}) AS answers_429,
        count(*) FILTER (WHERE {is_5xx}) AS answers_5xx, count(*) FILTER (WHERE step.attempt > 1) AS retries,
        sum(step.backoff_ms) AS backoff_ms, bool_or({without_status}) AS without_status
    FROM trials CROSS JOIN LATERAL (
        SELECT * FROM lab_step WHERE trial_id = trials.id AND kind = 'exchange'
            AND (attempt > 1 OR NOT ok OR ok IS NULL OR status IS NULL) OFFSET 0
    ) AS step
    GROUP BY step.trial_id
