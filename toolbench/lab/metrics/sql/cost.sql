-- Fragment: the cost of a trial in dollars, or NULL if it is unknown. A trial with neither an answer nor tokens
-- costs 0. A trial with answers but without tokens has an unknown cost, unless the price is 0.
--
-- Needs: `trials`, with the columns of _COLUMNS in metrics/cost.py; `spent`, from lost_spending.sql; `price`, dollars
-- per million tokens.
-- Parts: reported_cost: the cost that the provider reported, within bounds; has_reported_cost: the condition that it
-- reported one.
    CASE WHEN {has_reported_cost} THEN coalesce({reported_cost}, 0) + coalesce(spent.cost, 0)
        WHEN trials.input_tokens::float + trials.output_tokens + coalesce(spent.input_tokens, 0)
            + coalesce(spent.output_tokens, 0) > 0
        THEN (price.input * (trials.input_tokens::float + coalesce(spent.input_tokens, 0))
            + price.output * (trials.output_tokens::float + coalesce(spent.output_tokens, 0))) / 1000000
        WHEN trials.answered_turns = 0 OR (price.input = 0 AND price.output = 0) THEN 0 END
