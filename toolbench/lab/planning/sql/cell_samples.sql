-- Compute count, mean and variance of figures over the tried trials of cells. A figure that no trial has gets a count
-- of 0 and NULL otherwise.
--
-- Parameters: ids of the cells.
-- Returns: cell id, then count, mean and variance of each of ESTIMATED_FIGURES (planning/forecast.py), in their order.
SELECT cell_id,
    count(requests), avg(requests::float8), var_pop(requests::float8),
    count(input_tokens), avg(input_tokens::float8), var_pop(input_tokens::float8),
    count(output_tokens), avg(output_tokens::float8), var_pop(output_tokens::float8),
    count(cost), avg(cost::float8), var_pop(cost::float8),
    count(duration_ms), avg(duration_ms::float8), var_pop(duration_ms::float8)
FROM lab_trial
WHERE cell_id = ANY(%s) AND state = 'done' AND outcome IN ('pass', 'fail', 'infra')
GROUP BY cell_id
