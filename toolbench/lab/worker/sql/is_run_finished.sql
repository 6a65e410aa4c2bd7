-- Condition on `run`: it has not ended, every trial is done, no cell is stale, and every cell with sequential stopping
-- (`error` is not NULL) is decided. While the run is being cancelled, cells need not be decided.
--
-- A page stops refreshing once its run has ended, so the figures must be final by then.
state IN ('running', 'paused', 'cancelling')
    AND NOT EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state <> 'done')
    AND NOT EXISTS (SELECT 1 FROM lab_cell WHERE run_id = run.id
        AND (stale OR run.state <> 'cancelling' AND error IS NOT NULL AND decided = ''))
