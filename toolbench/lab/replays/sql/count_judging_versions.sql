-- Count the judged trials of a run by the versions that judged them.
--
-- Parameters: run_id.
-- Returns: scenario, its version at launch, version of the rules in the stored verdict (NULL in the oldest verdicts),
-- scenario version and rules version of the current judgement of the last execution (NULL without one), whether the
-- bodies are stored, number of trials.
-- Locks: none.
SELECT
    trial.scenario,
    trial.scenario_version,
    trial.verdict -> 'judging',
    judgement.scenario_version,
    judgement.judging_version,
    trial.bodies_removed_at IS NULL,
    count(*)
FROM lab_trial AS trial
JOIN lab_run AS run ON run.id = trial.run_id AND run.deleted_at IS NULL
LEFT JOIN lab_judgement AS judgement
    ON judgement.trial_id = trial.id AND judgement.current
    AND (judgement.judged_at >= trial.finished_at OR trial.finished_at IS NULL)
WHERE trial.run_id = %s AND trial.state = 'done' AND trial.verdict <> '{}'
GROUP BY 1, 2, 3, 4, 5, 6
