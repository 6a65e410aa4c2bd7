-- Fragment of a WITH clause: the trials of cells. `answered`: they passed, or failed within the deadline; `counted`: they
-- have ended and were not cancelled.
--
-- Parameters: cells.
tried AS (
    SELECT *, outcome = 'pass' OR (outcome = 'fail' AND "end" <> 'DEADLINE_EXCEEDED') AS answered,
        state = 'done' AND outcome <> 'cancelled' AS counted
    FROM lab_trial WHERE cell_id = ANY(%(cells)s)
)
