-- List the largest groups of failed trials of a run with the same signature and outcome.
--
-- Parameters: run_id; the number of groups.
-- Returns: signature; sentence, class and scenario of the first trial and whether all have this sentence; outcome, number
-- of trials, time of the first end and the first trial.
WITH largest AS (
    SELECT
        signature,
        outcome,
        count(*) AS trials,
        min(finished_at) AS first_seen,
        min(id) AS exemplar,
        min(sentence) = max(sentence) AS same_words
    FROM lab_trial
    WHERE run_id = %s AND outcome IN ('fail', 'infra')
    GROUP BY signature, outcome
    ORDER BY count(*) DESC, signature
    LIMIT %s
)
SELECT
    largest.signature,
    trial.sentence,
    largest.same_words,
    trial.failure_class,
    trial.scenario,
    largest.outcome,
    largest.trials,
    largest.first_seen,
    largest.exemplar
FROM largest JOIN lab_trial AS trial ON trial.id = largest.exemplar
ORDER BY largest.trials DESC, largest.signature, largest.outcome
