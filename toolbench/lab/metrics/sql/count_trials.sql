-- Count the trials of cells whose sums cannot be computed.
--
-- Parameters, parts, locks: as in recompute_cells.sql.
WITH {trials}, derived AS (SELECT cell_id, {counts} FROM trials GROUP BY cell_id)
UPDATE lab_cell AS cell SET stale = false, {set_counts}
FROM unnest(%(cells)s::bigint[]) AS wanted(id) LEFT JOIN derived AS d ON d.cell_id = wanted.id
WHERE cell.id = wanted.id
