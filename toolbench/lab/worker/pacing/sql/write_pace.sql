-- Write the state of the rate control of a provider.
--
-- Parameters: provider; state; concurrency; held_until: seconds since 1970; token_seconds: time by which the tokens of
-- the answers differ from those that were expected when their requests were sent.
UPDATE lab_providerpace SET state = %(state)s::jsonb, concurrency = %(concurrency)s,
    held_until = to_timestamp(%(held_until)s), next_token_at = next_token_at + make_interval(secs => %(token_seconds)s)
WHERE provider_id = %(provider)s
