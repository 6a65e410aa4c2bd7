-- Find undecided cells whose round of trials is over. The round of a cell is over when the cell's provider has no open
-- trial of the run; with rule "best", when no provider has one.
--
-- Parameters: none.
-- Returns: run, cell; in the order of their ids.
-- Locks: none.
SELECT run.id, cell.id FROM lab_run AS run
JOIN lab_cell AS cell ON cell.run_id = run.id AND cell.error IS NOT NULL AND cell.decided = ''
JOIN lab_runconfig AS config ON config.id = cell.config_id
WHERE run.state = 'running' AND run.deleted_at IS NULL AND run.until <> '{}'::jsonb AND NOT EXISTS (
    SELECT 1 FROM lab_trial AS trial WHERE trial.run_id = run.id AND trial.state <> 'done'
        AND (run.until ->> 'rule' = 'best' OR trial.provider_id = config.provider_id))
ORDER BY run.id, cell.id
