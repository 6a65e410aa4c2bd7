-- Sum what trials cost, by configuration.
--
-- Parameters: those of the part `trials`, then configurations, prices for a million input tokens and for a million
-- output tokens.
-- Parts: trials: a query of trial ids that the ORM wrote; the rest are fragments of this folder.
-- Returns: configuration, trials, trials whose provider named the cost, trials with a known cost, dollars, their
-- squares, dollars of delivered trials, delivered trials.
WITH tried AS (
    SELECT * FROM lab_trial WHERE outcome IN ('pass', 'fail', 'infra') AND id IN ({trials})
), spent AS ({lost_spending}), priced AS (
    SELECT tried.config_id, tried.outcome = 'pass' AND tried.errors_retried = 0 AS delivered,
        {has_reported_cost} AS named,
        {cost} AS dollars
    FROM tried LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%s::bigint[], %s::float[], %s::float[]) AS price(config, input, output)
        ON price.config = tried.config_id
)
SELECT config_id, count(*), count(*) FILTER (WHERE named), count(dollars),
    coalesce(sum(dollars), 0), coalesce(sum(dollars * dollars), 0),
    coalesce(sum(dollars) FILTER (WHERE delivered), 0), count(*) FILTER (WHERE delivered)
FROM priced GROUP BY config_id
