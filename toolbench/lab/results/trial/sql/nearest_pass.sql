-- Find a passed trial with stored bodies to compare each failed trial with: one of the same cell, else one of the same
-- run and scenario, if possible of the same model; among those, if possible one of the same instance.
--
-- Part: columns are those that are returned, of `failed`, the failed trial, and `near`, the passed one.
-- Parameters: ids of failed trials.
-- Returns: a row for each failed trial for which there is a passed one.
SELECT {columns} FROM lab_trial AS failed, LATERAL (
    SELECT passed.id FROM lab_cell AS cell JOIN lab_trial AS passed ON passed.cell_id = cell.id
    JOIN lab_runconfig AS config ON config.id = cell.config_id JOIN lab_runconfig AS own ON own.id = failed.config_id
    WHERE cell.run_id = failed.run_id AND cell.scenario = failed.scenario AND cell.passed > 0
        AND passed.outcome = 'pass' AND passed.bodies_removed_at IS NULL
    ORDER BY cell.id = failed.cell_id DESC, (config.provider_name, config.model_name) =
        (own.provider_name, own.model_name) DESC, passed.instance_seed = failed.instance_seed DESC, passed.id LIMIT 1
) AS near WHERE failed.id = ANY(%s)
