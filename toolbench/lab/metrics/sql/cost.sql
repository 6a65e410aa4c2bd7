-- Fragment: dollars of a trial, or NULL where they are unknown. A trial without an answer has cost nothing; an answer
-- whose tokens were not counted has no known price.
--
-- Needs: `tried`, `spent` and `price` beside it.
-- Parts: reported_cost: the cost that the provider named, within bounds; has_reported_cost: the condition that one
-- was named.
    CASE WHEN {has_reported_cost} THEN coalesce({reported_cost}, 0) + coalesce(spent.cost, 0)
        WHEN tried.input_tokens::float + tried.output_tokens + coalesce(spent.input_tokens, 0)
            + coalesce(spent.output_tokens, 0) > 0
        THEN (price.input * (tried.input_tokens::float + coalesce(spent.input_tokens, 0))
            + price.output * (tried.output_tokens::float + coalesce(spent.output_tokens, 0))) / 1000000
        WHEN tried.answered_turns = 0 THEN 0 END
