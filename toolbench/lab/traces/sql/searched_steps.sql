-- Select the bytes of steps that enter the search text of a trial: its first request and the arguments of its calls.
--
-- Parameters: ids: ids of trials; argument_bytes: number of bytes to read of the arguments of each call.
-- Returns: trial id, tool name ("" for the request), bytes; in the order of the steps.
SELECT trial.id, step.tool_name,
    CASE step.kind WHEN 'tool' THEN substr(body.request, 1, %(argument_bytes)s) ELSE body.request END
FROM lab_trial AS trial
JOIN lab_step AS step ON step.trial_id = trial.id AND step.execution = trial.execution
JOIN lab_stepbody AS body ON body.step_id = step.id
WHERE trial.id = ANY(%(ids)s) AND (step.kind = 'tool' OR step.ordinal = 1)
ORDER BY trial.id, step.ordinal
