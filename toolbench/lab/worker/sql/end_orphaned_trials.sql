-- End queued trials whose provider was deleted.
--
-- Parameters: the version of the cause table.
-- Returns: the cell of each trial.
-- Locks: trials. Trials that another transaction has locked are skipped; the next call ends them.
WITH ended AS (
    SELECT trial.id FROM lab_trial AS trial WHERE trial.state = 'queued' AND trial.provider_id IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'done', outcome = 'infra', "end" = 'PROVIDER_ERROR',
    failure_class = 'provider_deleted', sentence = 'The provider was deleted before this trial began.',
    signature = 'provider_deleted', cause = 'never_sent', taxonomy = %s, finished_at = clock_timestamp()
FROM ended WHERE trial.id = ended.id RETURNING trial.cell_id
