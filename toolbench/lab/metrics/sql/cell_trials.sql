-- Fragment of a WITH clause: the trials of cells, in any state.
--
-- Added columns:
-- - answered: whether the trial passed, or failed other than by the trial deadline.
-- - tried: whether the trial passed, failed or had an infrastructure error.
-- - instance: the seed of a drawn instance; NULL for the published wording and for test cases, whose task is the same
--   for every seed.
-- Parameters: cells: ids.
trials AS (
    SELECT *, outcome = 'pass' OR (outcome = 'fail' AND "end" <> 'DEADLINE_EXCEEDED') AS answered,
        outcome IN ('pass', 'fail', 'infra') AS tried,
        CASE WHEN instance_kind = 'drawn' AND scenario <> ALL(ARRAY(
            SELECT slug FROM lab_case WHERE slug IN (SELECT scenario FROM lab_cell WHERE id = ANY(%(cells)s))
        )) THEN instance_seed END AS instance
    FROM lab_trial WHERE cell_id = ANY(%(cells)s)
)
