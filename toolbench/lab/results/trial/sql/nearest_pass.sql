-- Find for each failed trial a passed trial with stored bodies to compare it with.
--
-- The passed trial is of the same run and scenario. One of the same cell is preferred, else one of the same model; among
-- equally good ones, one of the same instance.
--
-- Part: columns is the list of returned columns; `failed` is the failed trial, and `near` has the id of the passed one.
-- Parameters: ids of failed trials.
-- Returns: a row for each failed trial for which there is a passed one.
--
-- The other cells are only searched if the same cell has no such trial. OFFSET 0 keeps PostgreSQL from searching twice.
SELECT {columns} FROM lab_trial AS failed, LATERAL (
    SELECT coalesce(
        (
            SELECT passed.id FROM lab_trial AS passed
            WHERE passed.cell_id = failed.cell_id AND passed.outcome = 'pass' AND passed.bodies_removed_at IS NULL
            ORDER BY passed.instance_seed = failed.instance_seed DESC, passed.id
            LIMIT 1
        ),
        (
            SELECT passed.id FROM lab_cell AS cell JOIN lab_trial AS passed ON passed.cell_id = cell.id
            JOIN lab_runconfig AS config ON config.id = cell.config_id
            JOIN lab_runconfig AS failed_config ON failed_config.id = failed.config_id
            WHERE cell.run_id = failed.run_id AND cell.scenario = failed.scenario AND cell.passed > 0
                AND passed.outcome = 'pass' AND passed.bodies_removed_at IS NULL
            ORDER BY
                (config.provider_name, config.model_name)
                = (failed_config.provider_name, failed_config.model_name) DESC,
                passed.instance_seed = failed.instance_seed DESC, passed.id
            LIMIT 1
        )
    ) AS id
    OFFSET 0
) AS near WHERE failed.id = ANY(%s) AND near.id IS NOT NULL
