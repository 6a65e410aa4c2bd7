-- Find undecided cells of running runs whose round of trials is over. With rule "best", the round of a cell is over when
-- the run has no open trial; with another rule, when the run has no open trial at the cell's provider.
--
-- Parameters: none.
-- Returns: run id, cell id; in this order.
-- Locks: none.
SELECT run.id, cell.id FROM lab_run AS run
JOIN lab_cell AS cell ON cell.run_id = run.id AND cell.error IS NOT NULL AND cell.decided = ''
JOIN lab_runconfig AS config ON config.id = cell.config_id
WHERE run.state = 'running' AND run.deleted_at IS NULL AND run.until <> '{}'::jsonb AND NOT EXISTS (
    SELECT 1 FROM lab_trial AS trial WHERE trial.run_id = run.id AND trial.state <> 'done'
        AND (run.until ->> 'rule' = 'best' OR trial.provider_id = config.provider_id))
ORDER BY run.id, cell.id
