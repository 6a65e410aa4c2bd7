-- Compute every counter and figure of cells, and their lab_celltimes rows, from the trials of the cells.
--
-- Parameters: cells: ids; priced, input, output: configurations with their dollars per million input and output
-- tokens; lag: the event-loop lag in milliseconds above which the times of a trial are unreliable (counter
-- `saturated`).
-- Parts: fragments of this folder, and lists of columns that metrics/cells.py renders.
-- Planner: a worker plans this statement once, perhaps while the tables are empty. With a join in `spent`, that plan
-- would compare every running trial with every stored step. So `spent` looks up the steps of each trial; OFFSET 0
-- keeps PostgreSQL from turning this into a join. `retry_counts` looks up an array of trials with one scan of its
-- index, since a scan for each trial would double the time for a large cell. It is joined by a full join, which
-- PostgreSQL cannot do by comparing all pairs; all its trials are in `paid`. `paid` has all columns of `trials`, so
-- that the two need not be joined.
-- Locks: the cells, which the caller has locked before in id order, and their rows of lab_celltimes.
WITH {trials}, spent AS ({lost_spending}), retry_counts AS ({retry_counts}), paid AS (
    SELECT trials.*, {cost} AS dollars, {has_reported_cost} AS has_reported_cost,
        tried OR trials.requests > 0 OR spent.requests > 0 AS sent
    FROM trials LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%(priced)s::bigint[], %(input)s::float[], %(output)s::float[]) AS price(config, input, output)
        ON price.config = trials.config_id
), derived AS (
    SELECT cell_id, {counts}, {sums},
        {statistics}, {times}
    FROM paid AS trials LEFT JOIN spent USING (id) FULL JOIN retry_counts USING (id) GROUP BY cell_id
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
