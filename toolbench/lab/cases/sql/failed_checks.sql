-- Count the failed checks of trials by cell and check.
--
-- Parameters: cells.
-- Returns: cell, name of the check, trials, the first trial, an example of the detail.
SELECT trial.cell_id, found->>'name', count(*), min(trial.id), min(found->>'detail')
FROM lab_trial AS trial CROSS JOIN LATERAL jsonb_array_elements(trial.verdict->'checks') AS found
WHERE trial.cell_id = ANY(%s) AND trial.outcome = 'fail' AND found->>'ok' = 'false'
GROUP BY 1, 2 ORDER BY 3 DESC, 2
