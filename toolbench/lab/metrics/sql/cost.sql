-- Fragment: the cost of a trial in dollars, or NULL if it is unknown.
--
-- If the provider reported no cost, the cost follows from the tokens and the price. A trial with neither an answer nor
-- tokens costs 0. A trial with answers but without tokens has an unknown cost, unless the price is 0.
-- Needs: `trials`, with cost, input_tokens, output_tokens and answered_turns; `spent`, the rows of lost_spending.sql;
-- `price`, with dollars per million input and output tokens.
-- Parts: reported_cost: the trial's column of the reported cost, NULL if it is out of range; has_reported_cost: whether
-- the provider reported a cost for any of the trial's executions.
    CASE WHEN {has_reported_cost} THEN coalesce({reported_cost}, 0) + coalesce(spent.cost, 0)
        WHEN trials.input_tokens::float + trials.output_tokens + coalesce(spent.input_tokens, 0)
            + coalesce(spent.output_tokens, 0) > 0
        THEN (price.input * (trials.input_tokens::float + coalesce(spent.input_tokens, 0))
            + price.output * (trials.output_tokens::float + coalesce(spent.output_tokens, 0))) / 1000000
        WHEN trials.answered_turns = 0 OR (price.input = 0 AND price.output = 0) THEN 0 END
