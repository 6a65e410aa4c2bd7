-- Sum the costs and tokens of trials by configuration.
--
-- Parameters: those of the part `trials`, then configurations, their dollars per million input tokens, and their
-- dollars per million output tokens.
-- Parts: trials: a query, written by the ORM, of the columns in _COLUMNS of metrics/cost.py; the others are fragments
-- of this folder.
-- Returns: configuration; number of trials; number of trials whose cost the provider reported; number of trials with a
-- known cost; sum of dollars; sum of squared dollars; dollars of end-to-end successes; number of end-to-end successes;
-- sum of input and output tokens.
WITH trials AS ({trials}), spent AS ({lost_spending}), priced AS (
    SELECT trials.config_id, trials.outcome = 'pass' AND trials.errors_retried = 0 AS delivered,
        {has_reported_cost} AS reported,
        {cost} AS dollars,
        trials.input_tokens::numeric + trials.output_tokens + coalesce(spent.input_tokens, 0)
            + coalesce(spent.output_tokens, 0) AS tokens
    FROM trials LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%s::bigint[], %s::float[], %s::float[]) AS price(config, input, output)
        ON price.config = trials.config_id
)
SELECT config_id, count(*), count(*) FILTER (WHERE reported), count(dollars),
    coalesce(sum(dollars), 0), coalesce(sum(dollars * dollars), 0),
    coalesce(sum(dollars) FILTER (WHERE delivered), 0), count(*) FILTER (WHERE delivered),
    sum(tokens)
FROM priced GROUP BY config_id
