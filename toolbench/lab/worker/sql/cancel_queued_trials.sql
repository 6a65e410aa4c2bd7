-- End queued trials of runs that are being cancelled, or were cancelled while the trial was requeued.
--
-- Returns: the cell of each trial.
-- Locks: trials. Trials that another transaction has locked are skipped; the next call ends them.
WITH ended AS (
    SELECT trial.id FROM lab_trial AS trial JOIN lab_run AS run ON run.id = trial.run_id
    WHERE trial.state = 'queued' AND run.state IN ('cancelling', 'cancelled')
    FOR NO KEY UPDATE OF trial SKIP LOCKED
)
UPDATE lab_trial AS trial SET state = 'done', outcome = 'cancelled', "end" = 'CANCELLED', failure_class = 'cancelled',
    sentence = 'The run was cancelled before this trial began.', finished_at = clock_timestamp()
FROM ended WHERE trial.id = ended.id RETURNING trial.cell_id
