-- Remove the bodies of trials and store the rule that required it; verdicts, figures and steps stay.
--
-- Rows of lab_stepbody are emptied and not deleted, so that each step always has one.
-- Parameters: rows: JSON list of {id, rule}: id of the trial, rule in words.
-- Locks: bodies. The caller has locked the trials before, and replaces their search texts afterwards.
WITH chosen AS (
    SELECT id, rule FROM json_to_recordset(%(rows)s::json) AS listed(id bigint, rule text)
), emptied AS (
    UPDATE lab_stepbody AS body SET request = '', response = '', facts = '{}'
    FROM lab_step AS step, chosen
    WHERE step.id = body.step_id AND step.trial_id = chosen.id
)
UPDATE lab_trial AS trial
SET final_text = '', rendered_prompt = NULL, bodies_removed_at = clock_timestamp(), bodies_rule = chosen.rule
FROM chosen
WHERE trial.id = chosen.id
