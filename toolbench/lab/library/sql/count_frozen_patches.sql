-- Count the runs that froze each patch of a preset. Deleted and imported runs are left out.
--
-- Parameters: names of the layers in which a run freezes the preset, an array that is given twice.
-- Returns: each patch as JSON text, with its number of runs.
SELECT (layer->1)::text, count(DISTINCT config.run_id)
FROM lab_runconfig AS config
JOIN lab_run AS run ON run.id = config.run_id AND run.deleted_at IS NULL AND NOT run.imported
CROSS JOIN LATERAL jsonb_array_elements(config.layers) AS layer
WHERE config.layers @> ANY (SELECT jsonb_build_array(jsonb_build_array(name)) FROM unnest(%s::text[]) AS name)
    AND layer->>0 = ANY(%s::text[])
GROUP BY 1
