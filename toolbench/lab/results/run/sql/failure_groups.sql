-- Group the trials of a run that failed or had an infrastructure error by signature and outcome, and list the largest
-- groups, the largest first.
--
-- Parameters: id of the run; maximum number of groups.
-- Returns: signature; outcome; sentence of the first trial, which has the lowest id; whether all trials of the group
-- have this sentence; failure class of the first trial; scenario of the trials, empty for several; number of trials;
-- earliest time at which one of them ended; id of the first trial; ids of their configurations.
WITH by_config AS (
    SELECT
        signature,
        outcome,
        config_id,
        count(*) AS trials,
        min(finished_at) AS first_seen,
        min(id) AS exemplar,
        min(sentence) AS first_sentence,
        max(sentence) AS last_sentence,
        min(scenario) AS first_scenario,
        max(scenario) AS last_scenario
    FROM lab_trial
    WHERE run_id = %s AND outcome IN ('fail', 'infra')
    GROUP BY signature, outcome, config_id
),
largest AS (
    SELECT
        signature,
        outcome,
        sum(trials)::bigint AS trials,
        min(first_seen) AS first_seen,
        min(exemplar) AS exemplar,
        min(first_sentence) = max(last_sentence) AS same_words,
        min(first_scenario) = max(last_scenario) AS same_scenario,
        array_agg(config_id) AS config_ids
    FROM by_config
    GROUP BY signature, outcome
    ORDER BY sum(trials) DESC, signature
    LIMIT %s
)
SELECT
    largest.signature,
    largest.outcome,
    trial.sentence,
    largest.same_words,
    trial.failure_class,
    CASE WHEN largest.same_scenario THEN trial.scenario ELSE '' END,
    largest.trials,
    largest.first_seen,
    largest.exemplar,
    largest.config_ids
FROM largest JOIN lab_trial AS trial ON trial.id = largest.exemplar
ORDER BY largest.trials DESC, largest.signature, largest.outcome
