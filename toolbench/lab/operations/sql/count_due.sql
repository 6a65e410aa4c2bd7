-- Count the trials of each kind whose bodies are due, and estimate the stored bytes of these bodies.
--
-- The estimate is the mean of the newest `sample_size` due trials of a kind, times the number of due trials.
-- Parts: due: the statement due_trials, with trial.id and rule.kind.
-- Parameters: those of due_trials; sample_size.
-- Returns: kind, trials, bytes.
-- Locks: none.
WITH due AS (
    {due}
), ranked AS (
    SELECT id, kind, row_number() OVER (PARTITION BY kind ORDER BY id DESC) AS place FROM due
), sampled AS (
    SELECT ranked.kind, count(DISTINCT ranked.id) AS trials, coalesce(sum(
        pg_column_size(body.request) + pg_column_size(body.response) + pg_column_size(body.facts)
    ), 0) AS bytes
    FROM ranked
    LEFT JOIN lab_step AS step ON step.trial_id = ranked.id
    LEFT JOIN lab_stepbody AS body ON body.step_id = step.id
    WHERE ranked.place <= %(sample_size)s
    GROUP BY ranked.kind
)
SELECT counted.kind, counted.trials, (sampled.bytes * counted.trials / sampled.trials)::bigint
FROM (SELECT kind, count(*) AS trials FROM due GROUP BY kind) AS counted
JOIN sampled USING (kind)
