-- Count the causes that were seen in the trials of a run, by code and place.
--
-- Parameters: run, version of the cause table, number of rows.
-- Returns: code, place, trials, instances, trials in which it was repaired.
SELECT one.code, regexp_replace(one.path, '\[[0-9]+\]', '[]', 'g') AS place, count(DISTINCT trial.id), sum(one.count),
    count(DISTINCT trial.id) FILTER (WHERE one.mended)
FROM lab_trial AS trial, jsonb_to_recordset(trial.causes) AS one(code text, path text, count integer, mended boolean)
WHERE trial.run_id = %s AND trial.taxonomy = %s AND trial.causes <> '[]'
GROUP BY one.code, place ORDER BY 3 DESC, 1, 2 LIMIT %s
