-- Count the failed checks of failed trials by cell and check.
--
-- Parameters: ids of the cells.
-- Returns: cell id, name of the check, number of trials, id of the first trial, one of the details; the most frequent
-- checks first.
SELECT trial.cell_id, failed_check->>'name', count(*), min(trial.id), min(failed_check->>'detail')
FROM lab_trial AS trial CROSS JOIN LATERAL jsonb_array_elements(trial.verdict->'checks') AS failed_check
WHERE trial.cell_id = ANY(%s) AND trial.outcome = 'fail' AND failed_check->>'ok' = 'false'
GROUP BY 1, 2 ORDER BY 3 DESC, 2
