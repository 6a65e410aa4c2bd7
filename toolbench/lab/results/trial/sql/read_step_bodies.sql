-- Read step details and the beginnings of bodies of steps.
--
-- Details of a step that are larger than max_facts are not read. The others of a trial are read up to the total size
-- max_total: those of one turn first, then the rest in the order of the steps.
--
-- Parameters: steps, requests and responses are ids of steps; turn is the turn to read first, -1 for none; max_total,
-- max_facts and max_body are sizes in bytes.
-- Returns: a row for each step with a stored body: step id; step details, null if they are not read; beginning of the
-- request, empty if it is not read; beginning of the response, empty if it is not read.
WITH sized AS (
    SELECT body.step_id, sum(octet_length(body.facts)) OVER (
        PARTITION BY step.trial_id ORDER BY step.turn <> %(turn)s, step.ordinal
    ) <= %(max_total)s AS fits
    FROM lab_stepbody AS body JOIN lab_step AS step ON step.id = body.step_id
    WHERE body.step_id = ANY(%(steps)s) AND octet_length(body.facts) <= %(max_facts)s
)
SELECT body.step_id,
    CASE WHEN sized.fits THEN body.facts END,
    CASE WHEN body.step_id = ANY(%(requests)s) THEN substring(body.request FROM 1 FOR %(max_body)s) ELSE '' END,
    CASE WHEN body.step_id = ANY(%(responses)s) THEN substring(body.response FROM 1 FOR %(max_body)s) ELSE '' END
FROM lab_stepbody AS body LEFT JOIN sized ON sized.step_id = body.step_id
WHERE body.step_id = ANY(%(steps)s)
