-- Condition on `run`: every trial is done, every cell counted and, where its number of trials was left open, decided.
--
-- A page that finds its run ended asks no more, so what it shows then has to be the last.
state IN ('running', 'paused', 'cancelling')
    AND NOT EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state <> 'done')
    AND NOT EXISTS (SELECT 1 FROM lab_cell WHERE run_id = run.id
        AND (stale OR run.state <> 'cancelling' AND error IS NOT NULL AND decided = ''))
