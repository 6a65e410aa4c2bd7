-- Fragment of a WITH clause: the trials of cells, in any state.
--
-- `answered`: the trial passed, or failed other than by the trial deadline. `counted`: it has ended and was not
-- cancelled.
-- Parameters: cells.
trials AS (
    SELECT *, outcome = 'pass' OR (outcome = 'fail' AND "end" <> 'DEADLINE_EXCEEDED') AS answered,
        state = 'done' AND outcome <> 'cancelled' AS counted
    FROM lab_trial WHERE cell_id = ANY(%(cells)s)
)
