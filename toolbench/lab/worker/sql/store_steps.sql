-- Store steps with their bodies. Steps under a lost lease are skipped; steps that are already stored are not changed.
--
-- Parameters: one JSON array of rows; then arrays of requests, responses and facts, in the order of `place`.
-- Parts: typed: the columns with their types; names: their names.
-- Returns: for each run, its id and the number of tokens of the new steps.
-- Locks: the trials, so that none is requeued while this transaction is open. Otherwise steps of a trial could appear
-- after another execution of it has ended and the cell was counted.
-- Planner: from a join by id, lease and state, PostgreSQL expects one row, and would then compare each stored step with
-- each given one. From a LATERAL query, it expects one row for each given step, so it uses a hash join. "IS TRUE"
-- excludes a plan that reads all running trials by their index for each step.
WITH given AS (
    SELECT * FROM json_to_recordset(%s::json) AS row(place integer, lease uuid, {typed})
), fresh AS (
    SELECT given.*, held.run_id FROM given CROSS JOIN LATERAL (
        SELECT run_id FROM lab_trial AS trial
        WHERE id = given.trial_id AND lease = given.lease AND (state = 'running') IS TRUE FOR KEY SHARE
    ) AS held
), stored AS (
    INSERT INTO lab_step ({names}) SELECT {names} FROM fresh
    ON CONFLICT (trial_id, execution, ordinal) DO NOTHING
    RETURNING id, trial_id, execution, ordinal, coalesce(input_tokens, 0)::bigint + coalesce(output_tokens, 0) AS tokens
), bodies AS (
    INSERT INTO lab_stepbody (step_id, request, response, facts)
    SELECT stored.id, body.request, body.response, body.facts
    FROM stored JOIN fresh USING (trial_id, execution, ordinal)
    JOIN unnest(%b::bytea[], %b::bytea[], %b::bytea[]) WITH ORDINALITY AS body(request, response, facts, place)
        ON body.place = fresh.place
)
SELECT fresh.run_id, sum(stored.tokens)::bigint FROM stored JOIN fresh USING (trial_id, execution, ordinal)
GROUP BY fresh.run_id ORDER BY fresh.run_id
