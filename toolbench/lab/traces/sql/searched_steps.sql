-- Select the bytes from which the search texts of trials are built: the first request of each trial and the arguments
-- of its calls.
--
-- Parameters: ids: ids of trials; argument_bytes: number of bytes to read of the arguments of each call.
-- Returns: trial id, tool name ("" for the request), bytes; sorted by trial and step.
SELECT trial.id, step.tool_name,
    CASE step.kind WHEN 'tool' THEN substr(body.request, 1, %(argument_bytes)s) ELSE body.request END
FROM lab_trial AS trial
JOIN lab_step AS step ON step.trial_id = trial.id AND step.execution = trial.execution
JOIN lab_stepbody AS body ON body.step_id = step.id
WHERE trial.id = ANY(%(ids)s) AND (step.kind = 'tool' OR step.ordinal = 1)
ORDER BY trial.id, step.ordinal
