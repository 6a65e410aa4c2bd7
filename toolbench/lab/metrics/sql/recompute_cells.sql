-- Compute every counter and figure of cells, and their lab_celltimes rows, from the trials of the cells.
--
-- Parameters: cells; priced, input, output: configurations with their dollars per million tokens; lag: the
-- event-loop lag in milliseconds above which the times of a trial are unreliable (counter `saturated`).
-- Parts: fragments of this folder, and lists of columns that cells.py renders.
-- Planner: a worker plans this statement once, perhaps while the tables are empty. In `spent`, a join would then
-- compare every running trial with every stored step, so the steps are looked up for each trial; "OFFSET 0" keeps
-- PostgreSQL from making a join of that. `retry_counts` has a join, since its index has few steps; looking them up for
-- each trial makes the count of a large cell twice as long. `paid` has the columns of `trials`, so that the two need
-- not be joined.
-- Locks: none. The caller has locked the cells in id order.
WITH {trials}, spent AS ({lost_spending}), retry_counts AS ({retry_counts}), paid AS (
    SELECT trials.*, {cost} AS dollars, {has_reported_cost} AS has_reported_cost,
        tried OR trials.requests > 0 OR spent.requests > 0 AS sent
    FROM trials LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%(priced)s::bigint[], %(input)s::float[], %(output)s::float[]) AS price(config, input, output)
        ON price.config = trials.config_id
), derived AS (
    SELECT cell_id, {counts}, {sums},
        {statistics}, {times}
    FROM paid AS trials LEFT JOIN spent USING (id) LEFT JOIN retry_counts USING (id) GROUP BY cell_id
), times AS (
    INSERT INTO lab_celltimes (cell_id, durations, first_tokens, longest_ms)
    SELECT wanted.id, coalesce(durations, ''::bytea), coalesce(first_tokens, ''::bytea), longest_ms
    FROM unnest(%(cells)s::bigint[]) AS wanted(id) LEFT JOIN derived ON derived.cell_id = wanted.id
    ON CONFLICT (cell_id) DO UPDATE
    SET durations = excluded.durations, first_tokens = excluded.first_tokens, longest_ms = excluded.longest_ms
)
UPDATE lab_cell AS cell SET stale = false, compute_error = '',
    {set_counts}, {set_sums},
    {set_statistics}
FROM unnest(%(cells)s::bigint[]) AS wanted(id) LEFT JOIN derived AS d ON d.cell_id = wanted.id
WHERE cell.id = wanted.id
