-- Sum the costs of one provider's trials that have ended since a point in time, over all runs, deleted ones included.
--
-- Cancelled trials are included. Runs that ended before that time are skipped, since they have no such trial.
-- Parameters: provider; since; configs, inputs, outputs: configurations with their dollars per million tokens.
-- Parts: fragments of this folder.
-- Returns: ended trials whose cost is known, ended trials whose cost is unknown, dollars, running trials.
WITH trials AS (
    SELECT id, config_id, cost, input_tokens, output_tokens, answered_turns, execution, requests FROM lab_trial
    WHERE provider_id = %(provider)s AND state = 'done' AND finished_at >= %(since)s AND run_id IN (
        SELECT id FROM lab_run WHERE finished_at IS NULL OR finished_at >= %(since)s)
), spent AS ({lost_spending}), priced AS (
    SELECT {cost} AS dollars FROM trials LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%(configs)s::bigint[], %(inputs)s::float[], %(outputs)s::float[]) AS price(config, input, output)
        ON price.config = trials.config_id
)
SELECT count(dollars), count(*) - count(dollars), coalesce(sum(dollars), 0),
    (SELECT count(*) FROM lab_trial WHERE provider_id = %(provider)s AND state = 'running')
FROM priced
