-- Reserve the times of the next `requests` requests of a provider.
--
-- The first one is as long after the last reserved request as the limits demand, but not before now.
-- Parameters: provider; requests; request_seconds, token_seconds: seconds between two requests, by the requests and by
-- the tokens per minute.
-- Returns: seconds until the first request, by the requests and by the tokens per minute; no row if the provider was
-- deleted.
-- Locks: the row.
UPDATE lab_providerpace AS pace SET
    next_request_at = greatest(next_request_at, now.at) + make_interval(secs => %(requests)s * %(request_seconds)s),
    next_token_at = greatest(next_token_at, now.at) + make_interval(secs => %(requests)s * %(token_seconds)s)
FROM (SELECT clock_timestamp() AS at) AS now WHERE provider_id = %(provider)s
RETURNING extract(epoch FROM next_request_at - now.at)::float8 - %(requests)s * %(request_seconds)s,
    extract(epoch FROM next_token_at - now.at)::float8 - %(requests)s * %(token_seconds)s
