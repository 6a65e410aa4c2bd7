-- Compute only the counters of trials, for cells whose sums the database refuses.
--
-- Parameters: cells, lag: as in recompute_cells.sql.
-- Parts: as in recompute_cells.sql.
-- Locks: the cells, which the caller has locked before.
WITH {trials}, derived AS (SELECT cell_id, {counts} FROM trials GROUP BY cell_id)
UPDATE lab_cell AS cell SET stale = false, {set_counts}
FROM unnest(%(cells)s::bigint[]) AS wanted(id) LEFT JOIN derived AS d ON d.cell_id = wanted.id
WHERE cell.id = wanted.id
