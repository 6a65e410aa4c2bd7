-- Write the state of the rate control of a provider.
--
-- Parameters: provider; state; concurrency; held_until: time in seconds since 1970, before which no request is sent;
-- token_seconds: seconds to add to next_token_at, because answers had more tokens than expected, negative if they had
-- fewer; resets: whether to set next_request_at and next_token_at to now, because a limit per minute has changed.
UPDATE lab_providerpace SET state = %(state)s::jsonb, concurrency = %(concurrency)s,
    held_until = to_timestamp(%(held_until)s),
    next_request_at = CASE WHEN %(resets)s THEN clock_timestamp() ELSE next_request_at END,
    next_token_at = CASE WHEN %(resets)s THEN clock_timestamp()
        ELSE next_token_at + make_interval(secs => %(token_seconds)s) END
WHERE provider_id = %(provider)s
