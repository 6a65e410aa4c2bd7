-- Store parameters that a model refused in a run, once for each run, provider, model and name.
--
-- Parameters: one JSON array of objects with trial_id, name and why.
INSERT INTO lab_refusedparameter (run_id, provider_id, model_name, name, why, trial_id, created_at)
SELECT trial.run_id, trial.provider_id, config.model_name, given.name, given.why, trial.id, clock_timestamp()
FROM json_to_recordset(%s::json) AS given(trial_id bigint, name text, why text)
JOIN lab_trial AS trial ON trial.id = given.trial_id JOIN lab_runconfig AS config ON config.id = trial.config_id
WHERE trial.provider_id IS NOT NULL ORDER BY trial.run_id, config.model_name, given.name, trial.id
ON CONFLICT DO NOTHING
