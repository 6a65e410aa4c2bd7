-- For each provider, sum the costs of its trials that ended since a point in time, and read those of the gateway.
--
-- Cancelled trials and trials of deleted runs are included. Runs that ended before that time are skipped, since none of
-- their trials ended later.
-- Parameters: providers: ids; since: the first moment of a month; month: the first day of this month; configs, inputs,
-- outputs: configurations with their dollars per million input and output tokens.
-- Parts: fragments of this folder.
-- Returns: provider; number of ended trials whose cost is known; number of ended trials whose cost is unknown; dollars
-- of ended trials; number of running trials; dollars of the gateway's requests in the month; number of these requests
-- whose cost is known; number of these requests whose cost is unknown.
WITH trials AS (
    SELECT id, provider_id, config_id, cost, input_tokens, output_tokens, answered_turns, execution, requests
    FROM lab_trial
    WHERE provider_id = ANY(%(providers)s::bigint[]) AND state = 'done' AND finished_at >= %(since)s AND run_id IN (
        SELECT id FROM lab_run WHERE finished_at IS NULL OR finished_at >= %(since)s)
), spent AS ({lost_spending}), priced AS (
    SELECT trials.provider_id, count(*) AS trials, count(dollars) AS known, sum(dollars) AS dollars
    FROM trials LEFT JOIN spent USING (id)
    LEFT JOIN unnest(%(configs)s::bigint[], %(inputs)s::float[], %(outputs)s::float[]) AS price(config, input, output)
        ON price.config = trials.config_id
    CROSS JOIN LATERAL (SELECT {cost} AS dollars) AS trial_cost
    GROUP BY trials.provider_id
)
SELECT provider.id, coalesce(priced.known, 0), coalesce(trials - priced.known, 0), coalesce(priced.dollars, 0),
    (SELECT count(*) FROM lab_trial WHERE provider_id = provider.id AND state = 'running'),
    coalesce(gateway.dollars, 0), coalesce(gateway.known, 0), coalesce(gateway.unknown, 0)
FROM unnest(%(providers)s::bigint[]) AS provider(id)
LEFT JOIN priced ON priced.provider_id = provider.id
LEFT JOIN lab_gatewayspending AS gateway ON gateway.provider_id = provider.id AND gateway.month = %(month)s
