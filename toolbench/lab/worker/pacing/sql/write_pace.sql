-- Write the state of the rate control of a provider.
--
-- Parameters: provider; state; concurrency; held_until: seconds since 1970; token_seconds: time by which the tokens of
-- the answers differ from those that were expected when their requests were sent; resets: whether the times of the next
-- requests begin anew, since they follow from other limits.
UPDATE lab_providerpace SET state = %(state)s::jsonb, concurrency = %(concurrency)s,
    held_until = to_timestamp(%(held_until)s),
    next_request_at = CASE WHEN %(resets)s THEN clock_timestamp() ELSE next_request_at END,
    next_token_at = CASE WHEN %(resets)s THEN clock_timestamp()
        ELSE next_token_at + make_interval(secs => %(token_seconds)s) END
WHERE provider_id = %(provider)s
