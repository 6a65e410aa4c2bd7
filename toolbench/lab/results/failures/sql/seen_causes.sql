-- Count the causes that were found in the trials of a run that is not deleted, by code and JSON path.
--
-- Parameters: id of the run; version of the table of causes (only trials classified by it are counted); maximum number
-- of rows.
-- Returns: code, JSON path without list indices, number of trials, number of occurrences, and number of trials in which
-- each occurrence was harmless or was corrected by a later step. The rows with the most trials are first.
--
-- Trials without causes add no row. A condition that leaves them out would make PostgreSQL read the whole index of
-- trials with causes, of all runs.
SELECT
    cause.code, regexp_replace(cause.path, '\[[0-9]+\]', '[]', 'g') AS general_path, count(DISTINCT trial.id),
    sum(cause.count), count(DISTINCT trial.id) FILTER (WHERE cause.mended)
FROM
    lab_trial AS trial JOIN lab_run AS run ON run.id = trial.run_id AND run.deleted_at IS NULL,
    jsonb_to_recordset(trial.causes) AS cause(code text, path text, count integer, mended boolean)
WHERE trial.run_id = %s AND trial.taxonomy = %s
GROUP BY cause.code, general_path ORDER BY 3 DESC, 1, 2 LIMIT %s
