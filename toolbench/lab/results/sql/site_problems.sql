-- Read the problems that the home page shows in addition to those of runs and providers.
--
-- Parameters: seconds after which a worker without a heartbeat counts as gone; the time before which a probe is old;
-- maximum number of models.
-- Returns: one row with whether any worker sent a heartbeat within these seconds; the number of cells that could not be
-- computed, without those of deleted runs; and a JSON array of the models that are not retired and whose newest probe
-- is old, the oldest probe first, each as id, name, provider and time of that probe.
SELECT
    EXISTS (
        SELECT FROM lab_process
        WHERE kind = 'worker' AND seen_at > statement_timestamp() - make_interval(secs => %s)
    ),
    (
        SELECT count(*) FROM lab_cell AS cell JOIN lab_run AS run ON run.id = cell.run_id
        WHERE cell.compute_error <> '' AND run.deleted_at IS NULL
    ),
    (
        SELECT coalesce(json_agg(json_build_array(old.id, old.name, old.provider, old.probed_at)), '[]')
        FROM (
            SELECT model.id, model.name, provider.name AS provider, max(probe.finished_at) AS probed_at
            FROM lab_model AS model
            JOIN lab_provider AS provider ON provider.id = model.provider_id
            JOIN lab_probe AS probe ON probe.model_id = model.id
            WHERE NOT model.retired
            GROUP BY model.id, provider.id
            HAVING max(probe.finished_at) < %s
            ORDER BY probed_at
            LIMIT %s
        ) AS old
    )
